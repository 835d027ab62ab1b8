import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';

import { errors } from 'undici';

import { classifyUpstreamError } from '#core/egress/classify-upstream-error.ts';
import type { ResolveHost } from '#core/egress/pinned-lookup.ts';
import { closedPort, goodCertificate, openPool, resolvesTo } from '#test/support/egress-pool.ts';
import { openFakeRemote } from '#test/support/fake-remote.ts';
import { okWith, openRawServer } from '#test/support/raw-server.ts';
import type { RawRequest } from '#test/support/raw-server.ts';
import {
  bodyOf,
  dispatchTo,
  failureOf,
  RecordedCall,
  verdictOf,
} from '#test/support/recorded-call.ts';

import { answerOk, nextTurn, poolOf, until, untilRested } from './raw-scene.ts';

const GIVEN_UP = new Error('given up');
const NOTHING = { connected: 0, free: 0, pending: 0, running: 0, queued: 0 };
const OK = 'HTTP/1.1 200 OK\r\n';

suite('the call pool and requests that are given up', () => {
  test('one that is given up when it starts is never written, and its socket goes on', async () => {
    await using server = await openRawServer(answerOk);
    await using pool = poolOf(server.port, { connections: 1 });
    await bodyOf(dispatchTo(pool));
    await untilRested();
    const call = new RecordedCall((told, { controller }) => {
      if (told === 'start') controller?.abort(GIVEN_UP);
    });
    dispatchTo(pool, {}, call);
    assert.deepEqual(call.told, ['start'], 'no error within the dispatch');
    assert.equal(await failureOf(call), GIVEN_UP);
    assert.deepEqual([call.controller?.aborted, call.controller?.reason], [true, GIVEN_UP]);
    assert.equal(await bodyOf(dispatchTo(pool)), '2');
    assert.equal(server.connections, 1);
  });

  test('many that are given up while they wait cost the next one nothing', async () => {
    await using server = await openRawServer(answerOk);
    await using pool = poolOf(server.port, { connections: 1 });
    const giveUp = (told: string, { controller }: RecordedCall): void => {
      if (told === 'start') controller?.abort(GIVEN_UP);
    };
    const calls = Array.from({ length: 20_000 }, () =>
      dispatchTo(pool, {}, new RecordedCall(giveUp)),
    );
    assert.equal(await bodyOf(dispatchTo(pool)), '1');
    for (const call of calls) assert.equal(await failureOf(call), GIVEN_UP);
    assert.equal(server.requests.length, 1);
  });

  test('those that were given up while no socket came are not kept', async () => {
    const never: ResolveHost = () => {};
    const { pool } = openPool(443, { resolve: never });
    await using _end = pool;
    const call = Object.assign(new RecordedCall(), { isGone: true });
    for (let count = 0; count < 10_000; count++) dispatchTo(pool, {}, call);
    assert.ok(pool.stats().queued < 300, String(pool.stats().queued));
    assert.deepEqual(call.told, []);
  });

  test('one that was given up does not fail in the place of one that waits', async () => {
    const lookups: (() => void)[] = [];
    const failing: ResolveHost = (_host, _options, callback) =>
      void lookups.push(() => callback(new Error('no such host'), []));
    const { pool } = openPool(443, { connections: 1, resolve: failing });
    await using _end = pool;
    const gone = Object.assign(new RecordedCall(), { isGone: false });
    dispatchTo(pool, {}, gone);
    const waiting = dispatchTo(pool);
    gone.isGone = true;
    await until(() => lookups.length === 1);
    lookups[0]?.();
    await failureOf(waiting);
    assert.deepEqual(gone.told, []);
  });

  for (const [title, answer] of [
    ['before its answer', ''],
    ['within its head', OK],
    ['within its body', `${OK}content-length: 9\r\n\r\nabc`],
  ] as const) {
    test(`one that is given up ${title} ends its socket and frees its place`, async () => {
      await using server = await openRawServer((request) => {
        if (request.index === 1) request.socket.write(answer);
        else answerOk(request);
      });
      await using pool = poolOf(server.port, { connections: 1 });
      const call = dispatchTo(pool);
      const waiting = dispatchTo(pool);
      await until(() => server.requests.length === 1);
      if (answer.endsWith('abc')) await until(() => call.body === 'abc');
      call.controller?.abort(GIVEN_UP);
      assert.deepEqual([call.error, call.told.at(-1)], [GIVEN_UP, 'error']);
      assert.equal(await bodyOf(waiting), '2');
      call.controller?.abort(new Error('again'));
      call.controller?.pause();
      call.controller?.resume();
      assert.equal(call.told.filter((told) => told === 'error').length, 1);
      assert.equal(server.connections, 2);
      await until(() => server.openConnections === 1);
    });
  }

  test('one that is given up within a chunk hears nothing of the rest of it', async () => {
    await using server = await openRawServer(({ socket }) =>
      socket.write(`${OK}transfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n`),
    );
    await using pool = poolOf(server.port);
    const call = new RecordedCall((told, { controller }) => {
      if (told === 'data') controller?.abort(GIVEN_UP);
    });
    await failureOf(dispatchTo(pool, {}, call));
    assert.deepEqual(call.told, ['start', 'head', 'data', 'error']);
  });

  for (const where of ['start', 'head', 'data', 'end'] as const) {
    test(`what a handler throws at its ${where} is told to itself and ends nothing but its socket`, async () => {
      await using server = await openRawServer(answerOk);
      await using pool = poolOf(server.port, { connections: 1 });
      const bug = new TypeError('a bug');
      const call = new RecordedCall((told) => {
        if (told === where) throw bug;
      });
      dispatchTo(pool, {}, call);
      await until(() => call.told.includes('error'));
      assert.equal(call.error, bug);
      assert.equal(await bodyOf(dispatchTo(pool)), where === 'start' ? '1' : '2');
      assert.equal(server.connections, where === 'start' ? 1 : 2);
      assert.equal(call.told.filter((told) => told === 'error').length, 1);
    });
  }
});

suite('the call pool and back-pressure', () => {
  test('a paused answer waits, and goes on where it stopped', async () => {
    const body = 'x'.repeat(8_000_000);
    await using server = await openRawServer(({ socket }) => socket.write(okWith(body)));
    await using pool = poolOf(server.port);
    const call = new RecordedCall((told, { controller }) => {
      if (told === 'head') controller?.pause();
    });
    dispatchTo(pool, {}, call);
    await until(() => call.told.includes('head'));
    const bytes = call.body.length;
    await nextTurn();
    await nextTurn();
    assert.ok(call.body.length <= 70_000, `${call.body.length} bytes while paused`);
    assert.ok(bytes <= 70_000);
    assert.equal(call.controller?.paused, true);
    call.controller?.resume();
    assert.equal(await bodyOf(call), body);
  });

  test('a socket whose answer ended while it was paused does not hang the next request', async () => {
    await using server = await openRawServer(answerOk);
    await using pool = poolOf(server.port, { connections: 1 });
    for (const when of ['start', 'head', 'data'] as const) {
      const call = new RecordedCall((told, { controller }) => {
        if (told === when) controller?.pause();
      });
      dispatchTo(pool, {}, call);
      if (when === 'start') {
        await until(() => server.requests.length === 1);
        assert.deepEqual(call.told, ['start']);
        call.controller?.resume();
      }
      await bodyOf(call);
      await bodyOf(dispatchTo(pool));
    }
    assert.deepEqual([server.requests.length, server.connections], [6, 1]);
  });

  test('a paused request that is given up frees its place', async () => {
    await using server = await openRawServer((request) => {
      if (request.index === 1) request.socket.write(`${OK}content-length: 5\r\n\r\na`);
      else answerOk(request);
    });
    await using pool = poolOf(server.port, { connections: 1 });
    const call = dispatchTo(pool);
    await until(() => call.told.includes('data'));
    call.controller?.pause();
    call.controller?.abort(GIVEN_UP);
    assert.equal(await bodyOf(dispatchTo(pool)), '2');
  });
});

suite('the call pool and answers that are odd', () => {
  test('an answer that comes before the request was read counts, and ends its socket', async () => {
    await using server = await openRawServer(
      ({ socket, index }) => {
        if (index === 1) socket.pause();
        socket.write(index === 1 ? okWith('no').replace('200 OK', '413 No') : okWith('yes'));
      },
      { onHead: true },
    );
    await using pool = poolOf(server.port, { connections: 1 });
    const call = dispatchTo(pool, { body: Buffer.alloc(30_000_000) });
    assert.equal(await bodyOf(call), 'no');
    assert.equal(call.status, 413);
    assert.equal(await bodyOf(dispatchTo(pool, { body: null })), 'yes');
    assert.equal(server.connections, 2);
  });

  const cuts: readonly (readonly [string, string])[] = [
    ['before the answer', ''],
    ['within the head', `${OK}content-le`],
    ['within a body of known length', `${OK}content-length: 5\r\n\r\nabc`],
    ['within chunks', `${OK}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n`],
  ];
  for (const [title, text] of cuts) {
    for (const way of ['end', 'resetAndDestroy'] as const) {
      test(`a connection that the server ends ${title} (${way}) leaves the outcome unknown`, async () => {
        await using server = await openRawServer((request) => {
          if (request.index > 1) answerOk(request);
          else request.socket.write(text, () => setTimeout(() => request.socket[way](), 5));
        });
        await using pool = poolOf(server.port, { connections: 1 });
        const call = dispatchTo(pool);
        const waiting = dispatchTo(pool);
        await failureOf(call);
        assert.deepEqual(
          classifyUpstreamError(call.error).reason,
          way === 'end' ? 'socket-closed' : 'connection-reset',
        );
        assert.deepEqual([verdictOf(call), call.told.at(-1)], ['unknown', 'error']);
        assert.equal(await bodyOf(waiting), '2');
        assert.equal(server.requests.length, 2, 'it was not sent again');
      });
    }
  }

  test('a body without a length ends with the connection, but not with a reset', async () => {
    await using server = await openRawServer(({ socket, index }) =>
      socket.write(`${OK}\r\nabc`, () =>
        setTimeout(() => (index === 1 ? socket.end() : socket.resetAndDestroy()), 5),
      ),
    );
    await using pool = poolOf(server.port);
    assert.equal(await bodyOf(dispatchTo(pool)), 'abc');
    const cut = dispatchTo(pool);
    await failureOf(cut);
    assert.equal(classifyUpstreamError(cut.error).reason, 'connection-reset');
  });

  test('an answer that is not HTTP is a protocol error, and the next request has a new socket', async () => {
    await using server = await openRawServer((request) => {
      if (request.index === 1) request.socket.write('HTTP/1.1 200 OK\r\na b\r\n\r\n');
      else answerOk(request);
    });
    await using pool = poolOf(server.port, { connections: 1 });
    const call = dispatchTo(pool);
    await failureOf(call);
    assert.deepEqual(classifyUpstreamError(call.error), {
      kind: 'unknown',
      code: 'UPSTREAM_PROTOCOL_ERROR',
      reason: 'http-parse',
    });
    assert.equal(await bodyOf(dispatchTo(pool)), '2');
  });

  test('silence before the head and within the body ends a request when its limits say so', async () => {
    await using server = await openRawServer(({ socket, index }) => {
      if (index > 1) socket.write(`${OK}content-length: 5\r\n\r\nabc`);
    });
    await using pool = poolOf(server.port, { headersTimeoutMs: 30, bodyTimeoutMs: 30 });
    for (const reason of ['headers-timeout', 'body-timeout']) {
      const call = dispatchTo(pool);
      await failureOf(call);
      assert.equal(classifyUpstreamError(call.error).reason, reason);
    }
    const unlimited = dispatchTo(pool, { headersTimeout: 0, bodyTimeout: 0 });
    await until(() => unlimited.body === 'abc');
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal(unlimited.error, undefined);
  });

  test('the time in which a handler does not read is not the silence of the server', async () => {
    await using server = await openRawServer(({ socket }) => {
      socket.write(`${OK}content-length: 6\r\n\r\nabc`);
      setTimeout(() => socket.write('def'), 20);
    });
    await using pool = poolOf(server.port, { bodyTimeoutMs: 60 });
    const call = dispatchTo(pool);
    await until(() => call.body === 'abc');
    call.controller?.pause();
    await new Promise((resolve) => setTimeout(resolve, 150));
    call.controller?.resume();
    assert.equal(await bodyOf(call), 'abcdef');
  });
});

suite('the call pool and its end', () => {
  test('close() lets requests in flight and waiting ones finish', async () => {
    const held: RawRequest[] = [];
    await using server = await openRawServer((request) => held.push(request));
    await using pool = poolOf(server.port, { connections: 1 });
    const calls = [dispatchTo(pool), dispatchTo(pool)];
    await until(() => held.length === 1);
    const closed = pool.close();
    const late = dispatchTo(pool);
    await failureOf(late);
    assert.equal(classifyUpstreamError(late.error, false).reason, 'pool-closed');
    held[0]?.socket.write(okWith('1'));
    await until(() => held.length === 2);
    held[1]?.socket.write(okWith('2'));
    assert.deepEqual([await bodyOf(calls[0] ?? late), await bodyOf(calls[1] ?? late)], ['1', '2']);
    await closed;
    assert.deepEqual(pool.stats(), NOTHING);
    await until(() => server.openConnections === 0);
  });

  test('close() and destroy() of a pool that is idle, new or ended already end at once', async () => {
    await using server = await openRawServer(answerOk);
    for (const way of ['close', 'destroy'] as const) {
      const fresh = poolOf(server.port);
      await fresh[way]();
      const used = poolOf(server.port);
      await bodyOf(dispatchTo(used));
      await used[way]();
      for (const again of ['close', 'destroy', 'close'] as const) await used[again]();
      assert.deepEqual([fresh.stats(), used.stats()], [NOTHING, NOTHING]);
      await until(() => server.openConnections === 0);
    }
  });

  test('destroy() while a socket opens fails what waits as not sent and leaves none behind', async () => {
    await using server = await openRawServer(answerOk);
    const pool = poolOf(server.port);
    const calls = [dispatchTo(pool), dispatchTo(pool), dispatchTo(pool)];
    await pool.destroy();
    for (const call of calls) {
      await failureOf(call);
      assert.deepEqual([verdictOf(call), call.told], ['not-sent', ['error']]);
    }
    assert.deepEqual(pool.stats(), NOTHING);
    await until(() => server.openConnections === 0);
    assert.equal(server.requests.length, 0);
  });

  test('destroy() ends requests in flight with its error, waiting ones too, and refuses new ones', async () => {
    await using server = await openRawServer(() => {});
    const pool = poolOf(server.port, { connections: 1 });
    const calls = [dispatchTo(pool), dispatchTo(pool)];
    await calls[0]?.started.promise;
    await pool.destroy(GIVEN_UP);
    for (const call of calls) assert.equal(await failureOf(call), GIVEN_UP);
    const late = dispatchTo(pool);
    assert.ok((await failureOf(late)) instanceof errors.ClientDestroyedError);
    assert.equal(verdictOf(late), 'not-sent');
  });

  test('destroy() from within a handler ends that request, too', async () => {
    await using server = await openRawServer(answerOk);
    for (const when of ['start', 'head', 'data', 'end'] as const) {
      const pool = poolOf(server.port);
      const call = new RecordedCall((told) => {
        if (told === when) void pool.destroy(GIVEN_UP);
      });
      dispatchTo(pool, {}, call);
      await call.ended.promise;
      await pool.destroy();
      assert.equal(call.error, when === 'end' ? undefined : GIVEN_UP);
      assert.deepEqual(pool.stats(), NOTHING);
    }
  });

  test('close() gives up a connection that no request waits for any more', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    let lookups = 0;
    const resolve: ResolveHost = (host, options, callback) => {
      lookups += 1;
      if (lookups === 1) resolvesTo('127.0.0.1')(host, options, callback);
    };
    const { pool, decisions } = openPool(remote.port, { resolve });
    const calls = [dispatchTo(pool), dispatchTo(pool)];
    for (const call of calls) await bodyOf(call);
    assert.deepEqual([lookups, remote.connections], [2, 1]);
    await pool.close();
    assert.deepEqual(pool.stats(), NOTHING);
    assert.deepEqual(
      decisions.map(({ verdict }) => verdict),
      ['allow'],
    );
  });

  test('a handler that throws at an error surfaces, and costs no other request anything', async () => {
    const pool = poolOf(await closedPort());
    const bug = new TypeError('a bug in the handler of errors');
    // The test runner would take it for a fault of the test.
    const runners = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    const surfaced = once(process, 'uncaughtException');
    const bad = new RecordedCall((told) => {
      if (told === 'error') throw bug;
    });
    dispatchTo(pool, {}, bad);
    const good = dispatchTo(pool);
    await failureOf(good);
    assert.equal((await surfaced)[0], bug);
    for (const runner of runners) process.on('uncaughtException', runner);
    await pool.destroy();
  });
});
