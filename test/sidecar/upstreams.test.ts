// What on-call sees of the servers behind a whole sidecar, read from its metrics page.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { sendHttp } from '#test/support/agent-api-fixture.ts';
import { FakeMcpServer } from '#test/support/fake-mcp-server.ts';
import { SidecarFixture, serverAt } from '#test/support/sidecar-fixture.ts';

const TOOLS = [{ name: 'one' }, { name: 'two' }];

async function metricsOf({ sidecar }: SidecarFixture): Promise<string[]> {
  const page = await sendHttp(sidecar.healthPort ?? 0, { method: 'GET', path: '/metrics' });
  return page.text.split('\n');
}

/** Resolves when all of these lines are on the page; fails with what is there instead. */
async function shows(sidecar: SidecarFixture, ...lines: string[]): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + 10_000;
  for (;;) {
    const page = await metricsOf(sidecar);
    const missing = lines.filter((line) => !page.includes(line));
    if (missing.length === 0) return;
    assert.ok(
      systemClock.monotonicMs() < deadlineMs,
      `missing:\n${missing.join('\n')}\nin:\n${page.filter((line) => /catalog|available|sessions/.test(line)).join('\n')}`,
    );
    await systemClock.sleep(20);
  }
}

test('the catalog of each server is counted: reads, allowed tools, whether it is there', async () => {
  await using good = await FakeMcpServer.start({ era: 'both', tools: TOOLS });
  const gone = await FakeMcpServer.start({ era: 'both' });
  const { port } = gone;
  await gone.close();
  const dead = serverAt('dead', port);
  const all = serverAt('good', good.port);
  await using sidecar = await SidecarFixture.open([all, dead]);
  await shows(
    sidecar,
    'fairlead_catalog_refreshes_total{server="good",outcome="changed"} 2',
    'fairlead_catalog_tools{server="good"} 2',
    'fairlead_server_available{server="good"} 1',
    'fairlead_catalog_tools{server="dead"} 0',
    'fairlead_server_available{server="dead"} 0',
  );
  assert.ok(
    (await metricsOf(sidecar)).some((line) =>
      /^fairlead_catalog_refreshes_total\{server="dead",outcome="failed"\} [1-9]/.test(line),
    ),
  );
  const fewer = { allow: [['one']], trustReadOnlyHint: false, overrides: [] };
  await sidecar.reconfigure([{ ...all, tools: fewer }]);
  await shows(sidecar, 'fairlead_catalog_tools{server="good"} 1');
  assert.ok(!(await metricsOf(sidecar)).some((line) => line.includes('server="dead"')));
});

test('a list that is read again without a change is no change', async () => {
  await using server = await FakeMcpServer.start({
    era: 'modern',
    tools: TOOLS,
    listExtras: { ttlMs: 0 },
  });
  await using sidecar = await SidecarFixture.open([
    serverAt('up', server.port, { protocol: { era: 'Modern', versions: ['2026-07-28'] } }),
  ]);
  const changed = 'fairlead_catalog_refreshes_total{server="up",outcome="changed"} 2';
  await shows(sidecar, changed);
  const reads = server.received('tools/list').length;
  while (server.received('tools/list').length === reads) {
    await sidecar.modern('tools/list');
    await systemClock.sleep(100);
  }
  await shows(
    sidecar,
    changed,
    'fairlead_catalog_refreshes_total{server="up",outcome="unchanged"} 1',
  );
  server.tools = [...TOOLS, { name: 'three' }];
  while ((await sidecar.modern('tools/list')).text.includes('three') === false)
    await systemClock.sleep(100);
  await shows(sidecar, 'fairlead_catalog_tools{server="up"} 3');
});

test('sessions with servers are counted while they are open', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  await shows(sidecar, 'fairlead_sessions{side="upstream"} 1');
  const session = await sidecar.openSession();
  const params = { name: 'up__echo', arguments: {} };
  await sidecar.legacy(session, 'tools/call', params);
  await shows(sidecar, 'fairlead_sessions{side="upstream"} 2', 'fairlead_sessions{side="agent"} 1');
  await sendHttp(sidecar.port, { method: 'DELETE', headers: { 'Mcp-Session-Id': session } });
  await shows(sidecar, 'fairlead_sessions{side="upstream"} 1', 'fairlead_sessions{side="agent"} 0');
  server.forgetSessions();
  await sidecar.modern('tools/call', params);
  await shows(sidecar, 'fairlead_sessions{side="upstream"} 0');
  await sidecar.modern('tools/call', params);
  await shows(sidecar, 'fairlead_sessions{side="upstream"} 1');
  await sidecar.reconfigure([]);
  await shows(sidecar, 'fairlead_sessions{side="upstream"} 0');
});

test('each connection is one log line and one count of its server, allowed or not (R12)', async () => {
  await using good = await FakeMcpServer.start({ era: 'modern' });
  const gone = await FakeMcpServer.start({ era: 'modern' });
  const { port: closedPort } = gone;
  await gone.close();
  await using sidecar = await SidecarFixture.open([
    serverAt('good', good.port, { protocol: { era: 'Modern', versions: ['2026-07-28'] } }),
    serverAt('gone', closedPort, { protocol: { era: 'Modern', versions: ['2026-07-28'] } }),
  ]);
  const page = async (): Promise<string> => (await metricsOf(sidecar)).join('\n');
  const until = async (pattern: RegExp): Promise<void> => {
    const deadlineMs = systemClock.monotonicMs() + 10_000;
    while (!pattern.test(await page())) {
      assert.ok(systemClock.monotonicMs() < deadlineMs, String(pattern));
      await systemClock.sleep(20);
    }
  };
  const series = 'fairlead_egress_decisions_total';
  await until(
    new RegExp(`^${series}{server="good",verdict="allow",stage="peer",reason="ok"} [1-9]`, 'm'),
  );
  await until(
    new RegExp(
      `^${series}{server="gone",verdict="failed",stage="connect",reason="connect-refused"} [1-9]`,
      'm',
    ),
  );
  const lines = sidecar.lines('egress');
  const [allowed] = lines.filter(({ alias }) => alias === 'good');
  assert.deepEqual(
    [allowed?.['verdict'], allowed?.['stage'], allowed?.['host'], allowed?.['port']],
    ['allow', 'peer', '127.0.0.1', good.port],
  );
  assert.equal(allowed?.['address'], '127.0.0.1');
  assert.equal(typeof allowed?.['duration_ms'], 'number');
  const [failed] = lines.filter(({ alias }) => alias === 'gone');
  assert.deepEqual([failed?.['verdict'], failed?.['reason']], ['failed', 'connect-refused']);
});
