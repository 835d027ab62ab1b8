// Servers that lie, stall and overload: whatever one of them answers, its call ends with a clear
// error, its permit and socket come back, and the other servers notice nothing.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { modernMessage } from '#test/support/agent-api-fixture.ts';
import { FakeMcpServer, sseEvent, type RecordedRequest } from '#test/support/fake-mcp-server.ts';
import { SidecarFixture, serverAt, toolNames, until } from '#test/support/sidecar-fixture.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const ECHO = { name: 'up__echo', arguments: {} };

function deep(levels: number): string {
  return `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
}

function resultOf(request: RecordedRequest, result: object = { content: [] }): object {
  return {
    jsonrpc: '2.0',
    id: request.message?.id,
    result: { resultType: 'complete', ...result },
  };
}

function errorCode(answer: { readonly text: string }): string | undefined {
  return /"fairlead\.dev\/error":\{"code":"([A-Z_]+)"/.exec(answer.text)?.[1];
}

test('an agent that goes away while the catalog is being read sends nothing, and leaves no permit behind', async () => {
  await using server = await FakeMcpServer.start({ era: 'modern' });
  const listed = Promise.withResolvers<void>();
  server.intercept((request) =>
    request.message?.method === 'tools/list'
      ? { kind: 'stream', headers: JSON_TYPE, chunks: whenListed(request) }
      : undefined,
  );
  async function* whenListed(request: RecordedRequest): AsyncGenerator<string> {
    await listed.promise;
    const tools = [{ name: 'echo', inputSchema: { type: 'object' } }];
    yield JSON.stringify(resultOf(request, { tools }));
  }
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  const hangUp = new AbortController();
  const called = sidecar.modern('tools/call', ECHO, { signal: hangUp.signal });
  await until(() => sidecar.status().agents.requestsInFlight === 1);
  hangUp.abort();
  await assert.rejects(called);
  await until(() => sidecar.status().agents.requestsInFlight === 0);
  listed.resolve();
  assert.deepEqual(toolNames(await sidecar.modern('tools/list')), ['up__echo']);
  assert.equal(server.received('tools/call').length, 0);
  assert.equal(sidecar.status().servers[0]?.connections.inFlight, 0);
});

test('servers that never end their streams after the answer do not use up the pool', async () => {
  await using server = await FakeMcpServer.start({ era: 'modern' });
  server.intercept((request) =>
    request.message?.method === 'tools/call'
      ? {
          kind: 'stream',
          chunks: [sseEvent(resultOf(request)), sseEvent(resultOf(request)), ': still here\n\n'],
          end: 'hold',
        }
      : undefined,
  );
  const base = serverAt('up', server.port);
  await using sidecar = await SidecarFixture.open([
    { ...base, limits: { ...base.limits, maxConcurrency: 1 } },
  ]);
  // One permit has five sockets: the sixth call needs one that was taken from its server.
  for (let call = 0; call < 7; call++)
    assert.equal((await sidecar.modern('tools/call', ECHO)).status, 200);
  await until(() => sidecar.status().servers[0]?.connections.sockets === 0);
});

test('a tool that is nested without end is left out, and costs nobody else anything', async () => {
  await using good = await FakeMcpServer.start({ era: 'both' });
  await using bad = await FakeMcpServer.start({ era: 'both' });
  bad.intercept((request) =>
    request.message?.method === 'tools/list'
      ? {
          kind: 'reply',
          headers: JSON_TYPE,
          body: `{"jsonrpc":"2.0","id":${JSON.stringify(request.message.id)},"result":{"resultType":"complete","tools":[{"name":"plain","inputSchema":{"type":"object"}},{"name":"deep","inputSchema":{"type":"object"},"outputSchema":${deep(20_000)}}]}}`,
        }
      : undefined,
  );
  await using sidecar = await SidecarFixture.open([
    serverAt('good', good.port),
    serverAt('bad', bad.port),
  ]);
  assert.deepEqual(toolNames(await sidecar.modern('tools/list')), ['good__echo', 'bad__plain']);
  const called = await sidecar.modern('tools/call', { name: 'good__echo', arguments: {} });
  assert.equal(called.status, 200);
  assert.match(String(sidecar.status().servers[1]?.rejectedTools[0]?.reason), /nested deeper/);
});

test('a server that describes itself without end is served without its description', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy', sessions: false });
  server.intercept((request) =>
    request.message?.method === 'initialize'
      ? {
          kind: 'reply',
          headers: JSON_TYPE,
          body: `{"jsonrpc":"2.0","id":${JSON.stringify(request.message.id)},"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":${deep(20_000)}}}`,
        }
      : undefined,
  );
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  const called = await sidecar.modern('tools/call', ECHO);
  assert.equal(errorCode(called), undefined, called.text);
  assert.doesNotThrow(() => JSON.stringify(sidecar.status()));
});

for (const [what, data] of [
  ['is broken inside', '{"jsonrpc":"2.0","id":9,"method":"roots/list","params":{broken}}'],
  ['is no object', '[1,2]'],
  ['is a request in an era that has none', '{"jsonrpc":"2.0","id":9,"method":"roots/list"}'],
] as const) {
  test(`a message that ${what} ends its call with a protocol error`, async () => {
    const era = what.includes('era') ? 'modern' : 'legacy';
    await using server = await FakeMcpServer.start({ era });
    server.intercept((request) =>
      request.message?.method === 'tools/call'
        ? { kind: 'stream', chunks: [`data: ${data}\n\n`, sseEvent(resultOf(request))] }
        : undefined,
    );
    await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
    const session = await sidecar.openSession();
    const called =
      era === 'legacy'
        ? await sidecar.legacy(session, 'tools/call', ECHO)
        : await sidecar.modern('tools/call', ECHO);
    assert.equal(errorCode(called), 'UPSTREAM_PROTOCOL_ERROR', called.text);
    assert.equal(sidecar.status().servers[0]?.connections.inFlight, 0);
  });
}

test('a question in place of the answer ends its call, and gets no answer itself', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  server.intercept((request) =>
    request.message?.method === 'tools/call'
      ? { kind: 'reply', headers: JSON_TYPE, body: { jsonrpc: '2.0', id: 9, method: 'ping' } }
      : undefined,
  );
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  const session = await sidecar.openSession();
  const called = await sidecar.legacy(session, 'tools/call', ECHO);
  assert.equal(errorCode(called), 'UPSTREAM_PROTOCOL_ERROR', called.text);
  await sidecar.legacy(session, 'tools/list');
  const answers = server.requests.filter(
    ({ message }) => message?.method === undefined && message?.id === 9,
  );
  assert.deepEqual(answers, []);
});

for (const era of ['legacy', 'modern'] as const) {
  test(`what a ${era} server repeats of session ids and arguments reaches no log (R102) (R104)`, async () => {
    await using server = await FakeMcpServer.start({ era });
    const argument = 'canary-in-an-argument';
    const seen: string[] = [];
    server.intercept((request) => {
      const session = String(request.headers['mcp-session-id'] ?? 'none');
      const repeated = `Session ${session} not found; got ${request.body}`;
      if (session !== 'none') seen.push(session);
      if (request.message?.method === 'tools/call')
        return {
          kind: 'reply',
          status: seen.length % 2 === 0 ? 403 : 307,
          headers: { location: `${server.url}?echo=${encodeURIComponent(repeated)}` },
          body: { jsonrpc: '2.0', id: null, error: { code: -32001, message: repeated } },
        };
      if (request.message?.method !== 'tools/list' || session === 'none') return undefined;
      return {
        kind: 'reply',
        status: seen.length % 2 === 0 ? 404 : 200,
        body: {
          jsonrpc: '2.0',
          id: request.message.id,
          error: { code: -32001, message: `Session ${session} not found` },
        },
      };
    });
    await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
    await sidecar.modern('tools/list');
    const session = await sidecar.openSession();
    for (let call = 0; call < 4; call++) {
      const params = { name: 'up__echo', arguments: { text: argument } };
      await sidecar.modern('tools/call', params);
      await sidecar.legacy(session, 'tools/call', params);
    }
    const log = JSON.stringify(sidecar.lines('call')) + JSON.stringify(sidecar.allLines());
    for (const secret of [argument, session, ...seen]) assert.ok(!log.includes(secret), secret);
    if (era === 'legacy') assert.ok(seen.length > 2 && log.includes('[session]'));
  });
}

test('a storm of events for a slow agent is held back at the server, and arrives whole', async (t) => {
  const warnings: string[] = [];
  const note = (warning: Error): void => void warnings.push(warning.name);
  process.on('warning', note);
  t.after(() => process.off('warning', note));
  const pages = 1_500;
  let written = 0;
  const page = sseEvent({ jsonrpc: '2.0', method: 'notifications/progress', params: {} }).repeat(
    400,
  );
  await using server = await FakeMcpServer.start({ era: 'modern' });
  server.intercept((request) =>
    request.message?.method === 'tools/call'
      ? { kind: 'stream', chunks: storm(request) }
      : undefined,
  );
  function* storm(request: RecordedRequest): Generator<string> {
    for (; written < pages; written++) yield page;
    yield sseEvent(resultOf(request));
  }
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  await sidecar.modern('tools/list');
  const body = JSON.stringify(modernMessage('tools/call', ECHO));
  const agent = connect(sidecar.port, '127.0.0.1').pause();
  agent.write(
    `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${String(sidecar.port)}\r\nContent-Type: application/json\r\n` +
      'MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: up__echo\r\n' +
      `Connection: close\r\nContent-Length: ${String(body.length)}\r\n\r\n${body}`,
  );
  let held = -1;
  while (held !== written) {
    held = written;
    await systemClock.sleep(300);
  }
  assert.ok(written < pages, 'the server could not write everything');
  let text = '';
  agent.on('data', (chunk: Buffer) => (text += chunk.toString('latin1'))).resume();
  await once(agent, 'close');
  assert.equal(text.match(/notifications\/progress/g)?.length, pages * 400);
  assert.match(text, /"resultType":"complete"/);
  assert.deepEqual(warnings, []);
});
