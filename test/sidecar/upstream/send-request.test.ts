import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';

import { USER_AGENT } from '#core/version.ts';
import { sendRequest } from '#sidecar/upstream/send-request.ts';
import type { OutgoingRequest, UpstreamTarget } from '#sidecar/upstream/upstream-types.ts';
import { FakeClock } from '#test/support/fake-clock.ts';
import { FakeMcpServer, rpcError, sseEvent } from '#test/support/fake-mcp-server.ts';
import type { FakeMcpServerOptions, FakeReply } from '#test/support/fake-mcp-server.ts';

import { RecordingSink } from './recording-sink.ts';
import { targetFor } from './upstream-target.ts';
import type { TargetOptions, TestTarget } from './upstream-target.ts';

const BODY = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}';
const RESULT = { jsonrpc: '2.0', id: 1, result: { content: [] } };
const PROGRESS = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } };

function outgoing(more: Partial<OutgoingRequest> = {}): OutgoingRequest {
  return { body: BODY, headers: [], requestTimeoutMs: 30_000, streamReadTimeoutMs: 300_000, maxResponseBytes: 10_000, ...more };
}

async function answerOf(target: UpstreamTarget, more: Partial<OutgoingRequest> = {}): Promise<RecordingSink> {
  const sink = new RecordingSink();
  sendRequest(target, outgoing(more), sink);
  assert.deepEqual(sink.heard, [], 'the sink is never called before sendRequest returns');
  await sink.ended;
  return sink;
}

interface Pair extends AsyncDisposable {
  readonly server: FakeMcpServer;
  readonly target: TestTarget;
}

async function pair(reply: FakeReply | undefined, options: TargetOptions = {}, serverOptions: FakeMcpServerOptions = {}): Promise<Pair> {
  const server = await FakeMcpServer.start({ era: 'legacy', sessions: false, ...serverOptions });
  if (reply !== undefined) server.intercept(() => reply);
  const target = targetFor(server.url, options);
  return {
    server,
    target,
    async [Symbol.asyncDispose]() {
      await target[Symbol.asyncDispose]();
      await server.close();
    },
  };
}

test('a request carries exactly our headers, no Origin and no accept-encoding (R15) (R46)', async () => {
  await using both = await pair(undefined);
  const sink = await answerOf(both.target, { headers: ['mcp-session-id', 's', 'Mcp-Param-A', 'x'] });
  assert.equal(sink.last?.kind, 'json');
  const { rawHeaders, body, path } = both.server.requests[0] ?? assert.fail();
  const names = rawHeaders.filter((_value, index) => index % 2 === 0).map((name) => name.toLowerCase());
  assert.deepEqual(names.sort(), ['accept', 'connection', 'content-length', 'content-type', 'host', 'mcp-param-a', 'mcp-session-id', 'user-agent']);
  const { headers } = both.server.requests[0] ?? assert.fail();
  assert.equal(headers['accept'], 'application/json, text/event-stream');
  assert.equal(headers['content-type'], 'application/json');
  assert.equal(headers['user-agent'], USER_AGENT);
  assert.equal(body, BODY);
  assert.equal(path, '/mcp');
});

test('a JSON answer arrives in one piece, however it was cut', async () => {
  const text = JSON.stringify({ ...RESULT, result: { text: '世界'.repeat(500) } });
  const bytes = Buffer.from(text);
  await using both = await pair({ kind: 'stream', headers: { 'content-type': 'application/json; charset=utf-8' }, chunks: [bytes.subarray(0, 101), bytes.subarray(101)] });
  const sink = await answerOf(both.target);
  assert.deepEqual(sink.heard, [{ kind: 'json', status: 200, body: text }]);
});

test('a stream arrives message by message, then ends (R47) (R48)', async () => {
  await using both = await pair({ kind: 'stream', chunks: [': hello\n\n', sseEvent(PROGRESS).slice(0, 30), sseEvent(PROGRESS).slice(30), sseEvent(RESULT)] });
  const sink = await answerOf(both.target);
  assert.deepEqual(
    sink.heard.map((heard) => heard.kind),
    ['stream-start', 'message', 'message', 'stream-end'],
  );
  assert.deepEqual(sink.messages, [JSON.stringify(PROGRESS), JSON.stringify(RESULT)]);
});

const failures: readonly (readonly [what: string, reply: FakeReply, expected: { readonly code: string; readonly sent: string; readonly status?: number; readonly retryAfterMs?: number; readonly location?: string }])[] = [
  ['202 to a request', { kind: 'reply', status: 202 }, { code: 'UPSTREAM_PROTOCOL_ERROR', sent: 'unknown', status: 202 }],
  ['an HTML page', { kind: 'reply', headers: { 'content-type': 'text/html' }, body: '<html>' }, { code: 'UPSTREAM_PROTOCOL_ERROR', sent: 'unknown', status: 200 }],
  ['no content type', { kind: 'reply', body: '{}' }, { code: 'UPSTREAM_PROTOCOL_ERROR', sent: 'unknown', status: 200 }],
  ['an empty JSON body', { kind: 'reply', headers: { 'content-type': 'application/json' }, body: '' }, { code: 'UPSTREAM_PROTOCOL_ERROR', sent: 'unknown', status: 200 }],
  ['a compressed body', { kind: 'reply', headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' }, body: 'x' }, { code: 'UPSTREAM_PROTOCOL_ERROR', sent: 'unknown', status: 200 }],
  ['401', { kind: 'reply', status: 401, headers: { 'www-authenticate': 'Bearer' } }, { code: 'UPSTREAM_UNAUTHORIZED', sent: 'no', status: 401 }],
  ['429', { kind: 'reply', status: 429, headers: { 'retry-after': '3' } }, { code: 'SERVER_BUSY', sent: 'no', status: 429, retryAfterMs: 3_000 }],
  ['503 as HTML', { kind: 'reply', status: 503, headers: { 'content-type': 'text/html', 'retry-after': '1' }, body: 'x' }, { code: 'OUTCOME_UNKNOWN', sent: 'unknown', status: 503, retryAfterMs: 1_000 }],
  ['307 to the same host', { kind: 'reply', status: 307, headers: { location: '/mcp/' } }, { code: 'UPSTREAM_REDIRECTED', sent: 'no', status: 307, location: '/mcp/' }],
  ['302 to another host', { kind: 'reply', status: 302, headers: { location: 'http://169.254.169.254/' } }, { code: 'UPSTREAM_REDIRECTED', sent: 'no', status: 302, location: 'http://169.254.169.254/' }],
  ['a JSON body over the cap', { kind: 'reply', body: { a: 'x'.repeat(10_001) } }, { code: 'RESPONSE_TOO_LARGE', sent: 'unknown', status: 200 }],
  ['an endless JSON body', { kind: 'stream', headers: { 'content-type': 'application/json' }, chunks: endless('[1,'), end: 'hold' }, { code: 'RESPONSE_TOO_LARGE', sent: 'unknown', status: 200 }],
  ['an event over the cap', { kind: 'stream', chunks: endless('data: x\n'), end: 'hold' }, { code: 'RESPONSE_TOO_LARGE', sent: 'unknown', status: 200 }],
  ['an endless error page', { kind: 'stream', status: 500, headers: { 'content-type': 'text/html' }, chunks: endless('x'.repeat(1_000)), end: 'hold' }, { code: 'OUTCOME_UNKNOWN', sent: 'unknown', status: 500 }],
  ['a reset before the answer', { kind: 'reset' }, { code: 'OUTCOME_UNKNOWN', sent: 'unknown' }],
  ['a reset within a JSON body', { kind: 'stream', headers: { 'content-type': 'application/json', 'content-length': '100' }, chunks: ['{"a":'], end: 'reset' }, { code: 'OUTCOME_UNKNOWN', sent: 'unknown', status: 200 }],
  ['a chunked JSON body that is cut off', { kind: 'stream', headers: { 'content-type': 'application/json' }, chunks: ['{"a":'], end: 'reset' }, { code: 'OUTCOME_UNKNOWN', sent: 'unknown', status: 200 }],
];

function* endless(text: string): Generator<string> {
  for (;;) yield text;
}

for (const [what, reply, expected] of failures) {
  test(`${what} is ${expected.code}, sent: ${expected.sent}`, async () => {
    await using both = await pair(reply);
    const sink = await answerOf(both.target);
    const { detail: _, ...failure } = sink.failure;
    assert.deepEqual(failure, expected);
    assert.equal(both.server.requests.length, 1, 'nothing is followed or sent again');
  });
}

test('a stream that breaks after it began is a failure of unknown outcome', async () => {
  await using both = await pair({ kind: 'stream', chunks: [sseEvent(PROGRESS)], end: 'reset' });
  const sink = await answerOf(both.target);
  assert.deepEqual(sink.messages, [JSON.stringify(PROGRESS)]);
  assert.equal(sink.failure.code, 'OUTCOME_UNKNOWN');
  assert.equal(sink.failure.sent, 'unknown');
});

test('a 4xx with a JSON-RPC error is an answer', async () => {
  const error = rpcError(1, -32602, 'bad');
  await using both = await pair({ kind: 'reply', status: 400, body: error });
  assert.deepEqual((await answerOf(both.target)).heard, [{ kind: 'json', status: 400, body: JSON.stringify(error) }]);
});

test('404 means a lost session when a session was sent, and a refusal otherwise', async () => {
  await using both = await pair({ kind: 'reply', status: 404, body: rpcError(undefined, -32001, 'Session not found') });
  assert.equal((await answerOf(both.target, { headers: ['mcp-session-id', 's'] })).failure.code, 'SESSION_LOST');
  assert.equal((await answerOf(both.target)).last?.kind, 'json');
});

test('a server that cannot be reached got nothing', async () => {
  const server = await FakeMcpServer.start();
  const { url } = server;
  await server.close();
  await using target = targetFor(url);
  const { failure } = await answerOf(target);
  assert.equal(failure.code, 'SERVER_UNAVAILABLE');
  assert.equal(failure.sent, 'no');
});

test('an address that is not allowed got nothing', async () => {
  await using server = await FakeMcpServer.start();
  await using target = targetFor(server.url, { allowedHosts: ['mcp.example.com'] });
  const { failure } = await answerOf(target);
  assert.equal(failure.code, 'EGRESS_DENIED');
  assert.equal(failure.sent, 'no');
  assert.equal(server.connectionCount, 0);
});

test('a header that HTTP does not allow is refused, and nothing is sent', async () => {
  await using both = await pair(undefined);
  const { failure } = await answerOf(both.target, { headers: ['mcp-session-id', 'a\r\nx: y'] });
  assert.equal(failure.sent, 'no');
  assert.equal(both.server.requests.length, 0);
});

test('no answer within the request timeout is a timeout of unknown outcome, and the socket is closed', async () => {
  const clock = new FakeClock();
  await using both = await pair({ kind: 'hang' }, { clock });
  const sink = new RecordingSink();
  sendRequest(both.target, outgoing(), sink);
  await both.server.waitForRequest(() => true);
  clock.advance(29_999);
  assert.deepEqual(sink.heard, []);
  clock.advance(1);
  assert.equal(sink.failure.code, 'CALL_TIMED_OUT');
  assert.equal(sink.failure.sent, 'unknown');
  await both.server.waitForDisconnect();
  assert.equal(clock.pendingTimers, 0);
});

test('a connection that does not come within the request timeout means that nothing was sent', async () => {
  const clock = new FakeClock();
  // A TLS client that never gets a ServerHello.
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const target = targetFor(`https://127.0.0.1:${(silent.address() as AddressInfo).port}/mcp`, { clock, limits: { connectTimeoutMs: 60_000 } });
  const sink = new RecordingSink();
  sendRequest(target, outgoing(), sink);
  const [socket] = (await once(silent, 'connection')) as [{ destroy(): void }];
  clock.advance(30_000);
  assert.equal(sink.failure.code, 'SERVER_UNAVAILABLE');
  assert.equal(sink.failure.sent, 'no');
  socket.destroy();
  silent.close();
  await target[Symbol.asyncDispose]();
});

/** Shows when the time was looked at: on every chunk of a stream. */
class WatchedClock extends FakeClock {
  onRead: () => void = () => {};
  override monotonicMs(): number {
    this.onRead();
    return super.monotonicMs();
  }
}

test('comments are life, silence is not: only the read timeout ends a stream (R39)', async () => {
  const clock = new WatchedClock();
  let go: () => void = () => {};
  async function* chunks(): AsyncGenerator<string> {
    yield sseEvent(PROGRESS);
    for (let round = 0; round < 3; round++) {
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      yield ': keep-alive\n\n';
    }
    yield sseEvent({ ...PROGRESS, last: true });
  }
  await using both = await pair({ kind: 'stream', chunks: chunks(), end: 'hold' }, { clock });
  const sink = new RecordingSink();
  const heard = (count: number): Promise<void> =>
    new Promise((resolve) => {
      sink.onEach = () => {
        if (sink.messages.length === count) resolve();
      };
    });
  const first = heard(1);
  sendRequest(both.target, outgoing({ requestTimeoutMs: 1_000, streamReadTimeoutMs: 5_000 }), sink);
  await first;
  const last = heard(2);
  for (let round = 0; round < 3; round++) {
    clock.advance(4_000);
    const life = new Promise<void>((resolve) => {
      clock.onRead = resolve;
    });
    go();
    await life;
  }
  await last;
  clock.advance(4_999);
  assert.equal(sink.messages.length, 2);
  assert.equal(sink.last?.kind, 'message');
  clock.advance(1);
  assert.equal(sink.failure.code, 'CALL_TIMED_OUT');
});

/** Turns of the event loop in which loopback bytes that were written have arrived. */
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await nextTurn();
}

test('abort closes the exchange at once: the server sees it, the sink hears nothing more (R49)', async () => {
  await using both = await pair({ kind: 'stream', chunks: [sseEvent(PROGRESS), sseEvent(PROGRESS)], end: 'hold' });
  const sink = new RecordingSink();
  const inFlight = sendRequest(both.target, outgoing(), sink);
  await new Promise<void>((resolve) => {
    sink.onEach = (heard) => {
      if (heard.kind !== 'message') return;
      inFlight.abort();
      resolve();
    };
  });
  await both.server.waitForDisconnect();
  assert.deepEqual(
    sink.heard.map((heard) => heard.kind),
    ['stream-start', 'message'],
  );
});

test('abort before the connection is there sends nothing', async () => {
  await using both = await pair(undefined);
  const sink = new RecordingSink();
  sendRequest(both.target, outgoing(), sink).abort();
  // The next request on the same pool shows that the first one is over.
  await answerOf(both.target, { body: BODY.replace('"id":1', '"id":2') });
  assert.deepEqual(
    both.server.requests.map((request) => request.message?.id),
    [2],
  );
  assert.deepEqual(sink.heard, []);
});

test('abort, pause and resume after the end do nothing', async () => {
  await using both = await pair(undefined);
  const sink = new RecordingSink();
  const inFlight = sendRequest(both.target, outgoing(), sink);
  await sink.ended;
  await nextTurn();
  inFlight.pause();
  inFlight.resume();
  inFlight.abort();
  await answerOf(both.target);
  assert.equal(both.server.connectionCount, 1, 'the socket was used again');
});

test('a paused stream holds the server back, and goes on where it stopped', async () => {
  const count = 4_000;
  const event = sseEvent({ ...PROGRESS, filler: 'x'.repeat(8_000) });
  let written = 0;
  function* chunks(): Generator<string> {
    for (; written < count; written++) yield event;
    yield sseEvent(RESULT);
  }
  await using both = await pair({ kind: 'stream', chunks: chunks() });
  const sink = new RecordingSink();
  const inFlight = sendRequest(both.target, outgoing(), sink);
  await new Promise<void>((resolve) => {
    sink.onEach = (heard) => {
      if (heard.kind === 'message') resolve();
    };
  });
  inFlight.pause();
  const before = sink.messages.length;
  await someTurns();
  // What undici had read already may still come; the socket's buffers bound the rest.
  assert.ok(sink.messages.length - before < 50, `${sink.messages.length - before} messages while paused`);
  assert.ok(written < count, 'the server could not write everything');
  inFlight.resume();
  await sink.ended;
  assert.equal(sink.messages.length, count + 1);
  assert.equal(sink.last?.kind, 'stream-end');
});

test('a paused exchange that is aborted frees its place in the pool', async () => {
  await using both = await pair(undefined, { connections: 1 });
  const remove = both.server.intercept(() => ({ kind: 'stream', chunks: [sseEvent(PROGRESS)], end: 'hold' }));
  const sink = new RecordingSink();
  const inFlight = sendRequest(both.target, outgoing(), sink);
  await new Promise<void>((resolve) => {
    sink.onEach = (heard) => {
      if (heard.kind === 'message') resolve();
    };
  });
  remove();
  inFlight.pause();
  inFlight.abort();
  assert.equal((await answerOf(both.target)).last?.kind, 'json');
});

test('a socket is used again after an error answer', async () => {
  await using both = await pair({ kind: 'reply', status: 503, headers: { 'content-type': 'text/html' }, body: '<html>' });
  for (let round = 0; round < 3; round++) {
    await answerOf(both.target);
    // undici offers the socket again in the next turn.
    await nextTurn();
  }
  assert.equal(both.server.connectionCount, 1);
});

test('what a sink throws is logged, without its message', async () => {
  const lines: string[] = [];
  await using both = await pair(undefined, { onLine: (line) => lines.push(line) });
  const sink = new RecordingSink();
  sink.onEach = () => {
    throw new TypeError('a bug in the sink with a secret');
  };
  sendRequest(both.target, outgoing(), sink);
  await both.server.waitForRequest(() => true);
  while (lines.length === 0) await nextTurn();
  assert.match(lines.join(''), /an answer could not be handled/);
  assert.doesNotMatch(lines.join(''), /secret/);
});

test('listeners, timers and sockets are back to none after a thousand exchanges', async () => {
  const clock = new FakeClock();
  await using both = await pair(undefined, { clock, connections: 4 }, { answers: 'sse' });
  for (let round = 0; round < 250; round++) await Promise.all([1, 2, 3, 4].map(() => answerOf(both.target)));
  assert.equal(clock.pendingTimers, 0);
  assert.ok(both.server.connectionCount <= 4);
  assert.equal(both.target.pool.stats().running, 0);
});
