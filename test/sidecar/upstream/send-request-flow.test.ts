import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';

import { sendRequest } from '#sidecar/upstream/send-request.ts';
import { FakeClock } from '#test/support/fake-clock.ts';
import { sseEvent } from '#test/support/fake-mcp-server.ts';
import type { FakeReply } from '#test/support/fake-mcp-server.ts';

import { RecordingSink } from './recording-sink.ts';
import { BODY, PROGRESS, RESULT, answerOf, outgoing, pair } from './request-pair.ts';
import { targetFor } from './upstream-target.ts';

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

test('a status counts also when its body never ends, and the socket is closed', async () => {
  const clock = new FakeClock();
  const reply: FakeReply = {
    kind: 'stream',
    status: 401,
    headers: { 'content-type': 'application/json' },
    chunks: ['{"error":'],
    end: 'hold',
  };
  await using both = await pair(reply, { clock });
  const sink = new RecordingSink();
  const begun = new Promise<void>((resolve) => {
    sink.onHeaders = () => resolve();
  });
  sendRequest(both.target, outgoing(), sink);
  await begun;
  clock.advance(30_000);
  assert.equal(sink.failure.code, 'UPSTREAM_UNAUTHORIZED');
  await both.server.waitForDisconnect();
});

test('a connection that does not come within the request timeout means that nothing was sent', async () => {
  const clock = new FakeClock();
  // A TLS client that never gets a ServerHello.
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const target = targetFor(`https://127.0.0.1:${(silent.address() as AddressInfo).port}/mcp`, {
    clock,
    limits: { connectTimeoutMs: 60_000 },
  });
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
  await using both = await pair({
    kind: 'stream',
    chunks: [sseEvent(PROGRESS), sseEvent(PROGRESS)],
    end: 'hold',
  });
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
  assert.ok(
    sink.messages.length - before < 50,
    `${sink.messages.length - before} messages while paused`,
  );
  assert.ok(written < count, 'the server could not write everything');
  inFlight.resume();
  await sink.ended;
  assert.equal(sink.messages.length, count + 1);
  assert.equal(sink.last?.kind, 'stream-end');
});

test('a paused exchange that is aborted frees its place in the pool', async () => {
  await using both = await pair(undefined, { connections: 1 });
  const remove = both.server.intercept(() => ({
    kind: 'stream',
    chunks: [sseEvent(PROGRESS)],
    end: 'hold',
  }));
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

test('a paused stream that nobody reads on ends at the read timeout', async () => {
  const clock = new FakeClock();
  await using both = await pair(
    { kind: 'stream', chunks: [sseEvent(PROGRESS)], end: 'hold' },
    { clock },
  );
  const sink = new RecordingSink();
  const times = { requestTimeoutMs: 1_000, streamReadTimeoutMs: 5_000 };
  const inFlight = sendRequest(both.target, outgoing(times), sink);
  await new Promise<void>((resolve) => {
    sink.onEach = (heard) => {
      if (heard.kind === 'message') resolve();
    };
  });
  clock.advance(3_000);
  inFlight.pause();
  clock.advance(4_000);
  assert.equal(sink.last?.kind, 'message', 'the time before the pause does not count');
  clock.advance(1_000);
  assert.equal(sink.failure.code, 'CALL_TIMED_OUT');
  assert.equal(sink.failure.detail, 'the answer was not read');
});

test('a settled stream is heard no more, and its socket is used again when the server ends it', async () => {
  const gate = Promise.withResolvers<void>();
  async function* chunks(): AsyncGenerator<string> {
    yield sseEvent(RESULT);
    await gate.promise;
    yield sseEvent(PROGRESS);
  }
  await using both = await pair({ kind: 'stream', chunks: chunks() }, { connections: 1 });
  const sink = new RecordingSink();
  const inFlight = sendRequest(both.target, outgoing(), sink);
  await new Promise<void>((resolve) => {
    sink.onEach = (heard) => {
      if (heard.kind === 'message') resolve();
    };
  });
  inFlight.settle();
  gate.resolve();
  await answerOf(both.target);
  assert.equal(sink.messages.length, 1);
  assert.equal(both.server.connectionCount, 1);
});

test('a settled stream that the server does not end is closed', async () => {
  const clock = new FakeClock();
  await using both = await pair(
    { kind: 'stream', chunks: [sseEvent(RESULT)], end: 'hold' },
    { clock },
  );
  const sink = new RecordingSink();
  const inFlight = sendRequest(both.target, outgoing(), sink);
  await new Promise<void>((resolve) => {
    sink.onEach = (heard) => {
      if (heard.kind === 'message') resolve();
    };
  });
  inFlight.settle();
  await someTurns();
  assert.equal(both.server.disconnected.length, 0);
  clock.advance(1_000);
  await both.server.waitForDisconnect();
  assert.equal(sink.last?.kind, 'message');
});
