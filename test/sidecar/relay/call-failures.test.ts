// What can go wrong between the sidecar and a server: every case has one defined outcome, nothing
// that may have run is sent twice, and other servers notice nothing.

import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import type { Clock } from '#core/clock.ts';
import type { ServerConfig } from '#core/config/sidecar-config.ts';
import { FakeMcpServer, type FakeReply } from '#test/support/fake-mcp-server.ts';
import { SidecarFixture, serverAt, toolNames, until } from '#test/support/sidecar-fixture.ts';

type Effect = 'ReadOnly' | 'Write';

function configured(
  port: number,
  effect: Effect = 'Write',
  limits: Partial<ServerConfig['limits']> = {},
): ServerConfig {
  const base = serverAt('up', port, {
    tools: {
      allow: [['*']],
      trustReadOnlyHint: false,
      overrides: effect === 'Write' ? [] : [{ name: 'echo', effect }],
    },
  });
  return { ...base, limits: { ...base.limits, ...limits } };
}

function toolError(answer: {
  readonly json: { readonly result?: Record<string, unknown> };
}): string | undefined {
  const { result } = answer.json;
  if (result?.['isError'] !== true) return undefined;
  return (result['_meta'] as Record<string, { code: string }>)['fairlead.dev/error']?.code;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

interface Row {
  readonly title: string;
  readonly reply: FakeReply;
  readonly write: string;
  readonly readOnly: string;
  /** Requests that a ReadOnly call may make in all (2 retries); a write makes exactly one. */
  readonly readOnlySends: number;
}

const RPC = (status: number, code: number): FakeReply => ({
  kind: 'reply',
  status,
  body: { jsonrpc: '2.0', id: null, error: { code, message: 'no' } },
});

const ROWS: Row[] = [
  {
    title: 'the connection is reset after the request was read',
    reply: { kind: 'reset' },
    write: 'OUTCOME_UNKNOWN',
    readOnly: 'ANSWER_LOST',
    readOnlySends: 3,
  },
  {
    title: 'an event stream ends without an answer',
    reply: { kind: 'stream', chunks: [': hello\n\n'] },
    write: 'OUTCOME_UNKNOWN',
    readOnly: 'ANSWER_LOST',
    readOnlySends: 3,
  },
  {
    title: 'an event stream is reset midway',
    reply: { kind: 'stream', chunks: ['data: {"jsonrpc":'], end: 'reset' },
    write: 'OUTCOME_UNKNOWN',
    readOnly: 'ANSWER_LOST',
    readOnlySends: 3,
  },
  {
    title: 'the answer is HTML',
    reply: { kind: 'reply', body: '<html>hello</html>', headers: { 'content-type': 'text/html' } },
    write: 'UPSTREAM_PROTOCOL_ERROR',
    readOnly: 'UPSTREAM_PROTOCOL_ERROR',
    readOnlySends: 1,
  },
  {
    title: 'the answer is no JSON',
    reply: { kind: 'reply', body: '{"jsonrpc":', headers: { 'content-type': 'application/json' } },
    write: 'UPSTREAM_PROTOCOL_ERROR',
    readOnly: 'UPSTREAM_PROTOCOL_ERROR',
    readOnlySends: 1,
  },
  {
    title: 'the answer has another id',
    reply: { kind: 'reply', body: { jsonrpc: '2.0', id: 'other', result: {} } },
    write: 'UPSTREAM_PROTOCOL_ERROR',
    readOnly: 'UPSTREAM_PROTOCOL_ERROR',
    readOnlySends: 1,
  },
  {
    title: 'the answer is 202',
    reply: { kind: 'reply', status: 202, body: '' },
    write: 'UPSTREAM_PROTOCOL_ERROR',
    readOnly: 'UPSTREAM_PROTOCOL_ERROR',
    readOnlySends: 1,
  },
  {
    title: 'the answer is a redirect',
    reply: {
      kind: 'reply',
      status: 307,
      headers: { location: 'http://169.254.169.254/' },
      body: '',
    },
    write: 'UPSTREAM_REDIRECTED',
    readOnly: 'UPSTREAM_REDIRECTED',
    readOnlySends: 1,
  },
  {
    title: 'the answer is 401',
    reply: { kind: 'reply', status: 401, body: '' },
    write: 'UPSTREAM_UNAUTHORIZED',
    readOnly: 'UPSTREAM_UNAUTHORIZED',
    readOnlySends: 1,
  },
  {
    title: 'the answer is 502',
    reply: {
      kind: 'reply',
      status: 502,
      body: 'bad gateway',
      headers: { 'content-type': 'text/plain' },
    },
    write: 'OUTCOME_UNKNOWN',
    readOnly: 'ANSWER_LOST',
    readOnlySends: 3,
  },
  {
    title: 'the session is gone (404)',
    reply: RPC(404, -32001),
    write: 'OUTCOME_UNKNOWN',
    readOnly: 'SESSION_LOST',
    readOnlySends: 3,
  },
  {
    title: 'nothing comes within the request timeout',
    reply: { kind: 'hang' },
    write: 'OUTCOME_UNKNOWN',
    readOnly: 'CALL_TIMED_OUT',
    readOnlySends: 1,
  },
  {
    title: 'the stream falls silent',
    reply: { kind: 'stream', chunks: [': hello\n\n'], end: 'hold' },
    write: 'OUTCOME_UNKNOWN',
    readOnly: 'CALL_TIMED_OUT',
    readOnlySends: 1,
  },
];

for (const row of ROWS) {
  test(`${row.title}: a write is sent once, a read as often as is allowed, both end in a clear error (R39)`, async () => {
    for (const effect of ['Write', 'ReadOnly'] as const) {
      await using server = await FakeMcpServer.start({ era: 'legacy' });
      await using other = await FakeMcpServer.start({ era: 'both' });
      server.replyTo('tools/call', row.reply);
      const limits = { requestTimeoutMs: 400, streamReadTimeoutMs: 400 };
      await using sidecar = await SidecarFixture.open([
        configured(server.port, effect, limits),
        serverAt('fine', other.port),
      ]);
      const session = await sidecar.openSession();
      const answer = await sidecar.legacy(session, 'tools/call', {
        name: 'up__echo',
        arguments: {},
      });
      const final =
        answer.headers['content-type'] === 'text/event-stream'
          ? JSON.parse(answer.text.split('data: ').at(-1) ?? '')
          : answer.json;
      assert.equal(
        toolError({ json: final }),
        effect === 'Write' ? row.write : row.readOnly,
        effect,
      );
      assert.equal(
        server.received('tools/call').length,
        effect === 'Write' ? 1 : row.readOnlySends,
        effect,
      );
      const fine = await sidecar.legacy(session, 'tools/call', {
        name: 'fine__echo',
        arguments: {},
      });
      assert.equal(toolError(fine), undefined);
      await until(() =>
        sidecar.status().servers.every((status) => status.connections.inFlight === 0),
      );
    }
  });
}

test('after a lost session the next call opens a new one and succeeds', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  await using sidecar = await SidecarFixture.open([configured(server.port)]);
  const session = await sidecar.openSession();
  const call = () => sidecar.legacy(session, 'tools/call', { name: 'up__echo', arguments: {} });
  assert.equal(toolError(await call()), undefined);
  server.forgetSessions();
  assert.equal(toolError(await call()), 'OUTCOME_UNKNOWN', 'a 404 never resends a write');
  assert.equal(toolError(await call()), undefined);
  assert.equal(server.received('tools/call').length, 3);
});

test('a dead server is named in the list within its connect timeout, and everything else works (R73)', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await new Promise((resolve) => silent.once('listening', resolve));
  const silentPort = (silent.address() as { port: number }).port;
  await using fine = await FakeMcpServer.start({ era: 'both' });
  const hanging = serverAt('hanging', silentPort);
  const servers = [
    { ...hanging, limits: { ...hanging.limits, connectTimeoutMs: 300 } },
    serverAt('refused', await freePort()),
    serverAt('fine', fine.port),
  ];
  await using sidecar = await SidecarFixture.open(servers);
  const list = await sidecar.modern('tools/list');
  const names = toolNames(list);
  assert.deepEqual(names, ['fine__echo']);
  const meta = list.json.result?.['_meta'] as
    | Record<string, { alias: string; code: string }[]>
    | undefined;
  const missing = meta?.['fairlead.dev/unavailableServers'];
  assert.deepEqual(missing?.map(({ alias, code }) => `${alias} ${code}`).toSorted(), [
    'hanging SERVER_UNAVAILABLE',
    'refused SERVER_UNAVAILABLE',
  ]);
  const states = Object.fromEntries(
    sidecar.status().servers.map((server) => [server.alias, server.state]),
  );
  assert.deepEqual(states, { hanging: 'unavailable', refused: 'unavailable', fine: 'ok' });
  const call = await sidecar.modern('tools/call', { name: 'refused__anything', arguments: {} });
  assert.equal(toolError(call), 'SERVER_UNAVAILABLE');
  silent.close();
});

test('a server that comes back is found again without a restart', async () => {
  const port = await freePort();
  await using sidecar = await SidecarFixture.open([serverAt('up', port)]);
  await sidecar.modern('tools/list');
  assert.equal(sidecar.status().servers[0]?.state, 'unavailable');
  await using server = await FakeMcpServer.start({ era: 'both', port });
  await until(() => sidecar.status().servers[0]?.state === 'ok');
  assert.equal(
    toolError(await sidecar.modern('tools/call', { name: 'up__echo', arguments: {} })),
    undefined,
  );
  assert.equal(server.received('tools/call').length, 1);
});

test('no burst puts more than maxConcurrency calls on the wire, and who waits too long is told so with nothing sent (R40) (R41)', async () => {
  let onWire = 0;
  let most = 0;
  await using server = await FakeMcpServer.start({
    era: 'modern',
    onCall: async (call) => {
      onWire += 1;
      most = Math.max(most, onWire);
      await new Promise((resolve) => setTimeout(resolve, 150));
      onWire -= 1;
      return { content: [{ type: 'text', text: String(call.arguments['n']) }] };
    },
  });
  await using sidecar = await SidecarFixture.open([
    configured(server.port, 'Write', { maxConcurrency: 2, queueTimeoutMs: 200, queueSize: 50 }),
  ]);
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      sidecar.modern('tools/call', { name: 'up__echo', arguments: { n } }),
    ),
  );
  const busy = answers.filter((answer) => toolError(answer) === 'SERVER_BUSY');
  assert.ok(most <= 2);
  assert.ok(busy.length > 0);
  assert.equal(server.received('tools/call').length, 12 - busy.length);
  assert.match(busy[0]?.text ?? '', /busy/);
  assert.deepEqual(
    sidecar.status().servers.map(({ connections }) => [connections.inFlight, connections.queued]),
    [[0, 0]],
  );
});

test("a request over the server's size limit is refused and nothing is sent (R17)", async () => {
  await using server = await FakeMcpServer.start({ era: 'modern' });
  await using sidecar = await SidecarFixture.open([
    configured(server.port, 'Write', { maxRequestBytes: 2_048 }),
  ]);
  const answer = await sidecar.modern('tools/call', {
    name: 'up__echo',
    arguments: { text: 'x'.repeat(4_096) },
  });
  assert.equal(answer.json.error?.data?.['code'], 'REQUEST_TOO_LARGE');
  assert.equal(server.received('tools/call').length, 0);
});

test('an answer over the size limit is a clear error with its cause, not a broken answer', async () => {
  await using server = await FakeMcpServer.start({
    era: 'modern',
    onCall: () => ({ content: [{ type: 'text', text: 'x'.repeat(5_000) }] }),
  });
  await using sidecar = await SidecarFixture.open([
    configured(server.port, 'Write', { maxResponseBytes: 4_096 }),
  ]);
  const answer = await sidecar.modern('tools/call', { name: 'up__echo', arguments: {} });
  assert.equal(toolError(answer), 'RESPONSE_TOO_LARGE');
  assert.equal(server.received('tools/call').length, 1);
});

test('an agent that hangs up cancels: a modern server sees its stream closed, a legacy one is told', async () => {
  for (const era of ['modern', 'legacy'] as const) {
    await using server = await FakeMcpServer.start({ era });
    server.replyTo('tools/call', { kind: 'hang' });
    await using sidecar = await SidecarFixture.open([configured(server.port)]);
    const session = await sidecar.openSession();
    const hangUp = new AbortController();
    const params = { name: 'up__echo', arguments: {} };
    const call =
      era === 'modern'
        ? sidecar.modern('tools/call', params, { signal: hangUp.signal })
        : sidecar.legacy(session, 'tools/call', params, { id: 'my-call', signal: hangUp.signal });
    await server.waitForRequest((request) => request.message?.method === 'tools/call');
    hangUp.abort();
    await assert.rejects(call);
    await server.waitForDisconnect((request) => request.message?.method === 'tools/call');
    if (era === 'legacy') {
      const cancelled = await server.waitForRequest(
        (request) => request.message?.method === 'notifications/cancelled',
      );
      assert.equal(cancelled.message?.params?.['requestId'], 'my-call');
    }
    await until(() => sidecar.lines('call').some((line) => line['result_class'] === 'cancelled'));
    assert.equal(server.received('tools/call').length, 1);
  }
});

test('notifications/cancelled of a legacy agent cancels its request and no other', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  server.replyTo('tools/call', { kind: 'hang' });
  await using sidecar = await SidecarFixture.open([configured(server.port)]);
  const [mine, foreign] = [await sidecar.openSession(), await sidecar.openSession()];
  const call = sidecar.legacy(mine, 'tools/call', { name: 'up__echo', arguments: {} }, { id: 5 });
  call.catch(() => {});
  await server.waitForRequest((request) => request.message?.method === 'tools/call');
  await sidecar.legacy(foreign, 'notifications/cancelled', { requestId: 5 });
  assert.equal(server.received('notifications/cancelled').length, 0);
  await sidecar.legacy(mine, 'notifications/cancelled', { requestId: 5 });
  await server.waitForRequest((request) => request.message?.method === 'notifications/cancelled');
  await until(() => sidecar.status().servers[0]?.connections.inFlight === 0);
});

/** Real time, a chosen way ahead. */
function skewedClock(): Clock & { aheadMs: number } {
  const clock = {
    ...systemClock,
    aheadMs: 0,
    monotonicMs: () => systemClock.monotonicMs() + clock.aheadMs,
  };
  return clock;
}

for (const [before, after] of [
  ['legacy', 'modern'],
  ['modern', 'legacy'],
] as const) {
  test(`a ${before} server that is replaced by a ${after} one is found out without a restart, by agents of both eras`, async () => {
    const clock = skewedClock();
    const first = await FakeMcpServer.start({ era: before });
    await using sidecar = await SidecarFixture.open([configured(first.port)], {}, { clock });
    const session = await sidecar.openSession();
    const params = { name: 'up__echo', arguments: {} };
    const works = async (): Promise<boolean> => {
      const modern = await sidecar.modern('tools/call', params);
      const legacy = await sidecar.legacy(session, 'tools/call', params);
      const results = [modern.json.result, legacy.json.result];
      return results.every((result) => result !== undefined && result['isError'] !== true);
    };
    assert.equal(await works(), true);
    const { port } = first;
    await first.close();
    await using second = await FakeMcpServer.start({ era: after, port });
    assert.equal(await works(), false, 'nobody knows yet');
    clock.aheadMs = 61_000;
    await until(() => {
      void works();
      return second.received('tools/list').length > 0;
    });
    while (!(await works())) await clock.sleep(50);
    assert.deepEqual(toolNames(await sidecar.modern('tools/list')), ['up__echo']);
    assert.equal(sidecar.status().servers[0]?.era, after);
  });
}

test('a server without session ids sees ids that no two agents share', async () => {
  const gate = Promise.withResolvers<void>();
  await using server = await FakeMcpServer.start({
    era: 'legacy',
    sessions: false,
    onCall: () => gate.promise.then(() => ({ content: [] })),
  });
  await using sidecar = await SidecarFixture.open([configured(server.port)]);
  const sessions = [await sidecar.openSession(), await sidecar.openSession()];
  const params = { name: 'up__echo', arguments: {} };
  const meta = { progressToken: 1 };
  const [first, second] = sessions.map((session) =>
    sidecar.legacy(session, 'tools/call', params, { id: 1, meta }),
  );
  await until(() => server.received('tools/call').length === 2);
  const seen = server.received('tools/call').map(({ message, body }) => {
    const id = JSON.stringify(message?.id);
    assert.ok(body.includes(`"progressToken":${id}`), 'the progress token is ours too');
    return message?.id;
  });
  assert.equal(new Set(seen).size, 2, JSON.stringify(seen));
  // Cancelling one leaves the other alone, though both agents call theirs 1.
  await sidecar.legacy(sessions[0] ?? '', 'notifications/cancelled', { requestId: 1 });
  await server.waitForRequest(
    ({ message }) =>
      message?.method === 'notifications/cancelled' && message.params?.['requestId'] === seen[0],
  );
  gate.resolve();
  await first;
  assert.equal((await second)?.json.id, 1);
});
