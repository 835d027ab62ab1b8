import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { openHealthServer } from '#core/telemetry/health-server.ts';
import type { HealthOptions } from '#core/telemetry/health-server.ts';
import { sendHttp } from '#test/support/agent-api-fixture.ts';

async function openHealth(edit: Partial<HealthOptions> = {}) {
  const server = await openHealthServer({
    host: '127.0.0.1',
    port: 0,
    notReadyReason: () => undefined,
    metrics: async () => ({ contentType: 'text/plain; version=0.0.4', text: 'up 1\n' }),
    ...edit,
  });
  const get = (path: string, method = 'GET') => sendHttp(server.port, { method, path });
  return { get, port: server.port, [Symbol.asyncDispose]: () => server.close() };
}

describe('the health server', () => {
  it('answers exactly its three paths (R108)', async () => {
    await using health = await openHealth();
    const rows: readonly [string, number, string][] = [
      ['/livez', 200, 'ok\n'],
      ['/readyz', 200, 'ok\n'],
      ['/readyz?verbose', 200, 'ok\n'],
      ['/metrics', 200, 'up 1\n'],
    ];
    for (const [path, status, text] of rows) {
      const answer = await health.get(path);
      assert.deepEqual([path, answer.status, answer.text], [path, status, text]);
    }
    for (const path of ['/', '/mcp', '/status', '/livez/', '/debug/pprof', '//metrics']) {
      assert.equal((await health.get(path)).status, 404, path);
    }
  });

  it('takes GET and HEAD only', async () => {
    await using health = await openHealth();
    assert.deepEqual(
      [(await health.get('/livez', 'HEAD')).status, (await health.get('/livez', 'HEAD')).text],
      [200, ''],
    );
    for (const method of ['POST', 'DELETE', 'OPTIONS'])
      assert.equal((await health.get('/livez', method)).status, 405);
  });

  it('says why it is not ready, while it is alive', async () => {
    let reason: string | undefined = 'draining';
    await using health = await openHealth({ notReadyReason: () => reason });
    const answer = await health.get('/readyz');
    assert.deepEqual([answer.status, answer.text], [503, 'draining\n']);
    assert.equal((await health.get('/livez')).status, 200);
    reason = undefined;
    assert.equal((await health.get('/readyz')).status, 200);
  });

  it('survives metrics that cannot be collected, and says nothing of the cause', async () => {
    await using health = await openHealth({ metrics: () => Promise.reject(new Error('canary')) });
    const answer = await health.get('/metrics');
    assert.equal(answer.status, 500);
    assert.ok(!answer.text.includes('canary'));
    assert.equal((await health.get('/livez')).status, 200);
  });

  it('refuses a port that is taken by its name', async () => {
    await using health = await openHealth();
    await assert.rejects(openHealth({ port: health.port }), { code: 'PORT_IN_USE' });
  });
});
