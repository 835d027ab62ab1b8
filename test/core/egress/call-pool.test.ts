import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import type { ResolveHost } from '#core/egress/pinned-lookup.ts';
import { closedPort, goodCertificate, openPool, resolvesTo } from '#test/support/egress-pool.ts';
import { openFakeRemote } from '#test/support/fake-remote.ts';
import { FakeClock } from '#test/support/fake-clock.ts';
import { okWith, openRawServer } from '#test/support/raw-server.ts';
import type { RawRequest } from '#test/support/raw-server.ts';
import {
  bodyOf,
  dispatchTo,
  failureOf,
  RecordedCall,
  verdictOf,
} from '#test/support/recorded-call.ts';

import { answerOk, poolOf, until, untilRested } from './raw-scene.ts';

suite('the call pool and what it writes', () => {
  test('a request is one HTTP/1.1 message with our Host and length, in one piece', async () => {
    await using server = await openRawServer(answerOk);
    await using pool = poolOf(server.port);
    await bodyOf(dispatchTo(pool, { headers: ['X-A', '1'], body: '{"ä":1}' }));
    assert.equal(
      server.requests[0]?.text,
      `POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\nconnection: keep-alive\r\nX-A: 1\r\ncontent-length: 8\r\n\r\n${Buffer.from('{"ä":1}').toString('latin1')}`,
    );
  });

  for (const bytes of [0, 1, 65_536, 65_537, 4_000_000]) {
    test(`a body of ${bytes} bytes arrives whole, as text and as bytes`, async () => {
      await using server = await openRawServer(answerOk);
      await using pool = poolOf(server.port);
      const text = 'é'.repeat(bytes / 2).padEnd(bytes - Math.floor(bytes / 2), 'x');
      for (const body of [text, Buffer.from(text)]) await bodyOf(dispatchTo(pool, { body }));
      for (const { text: sent } of server.requests)
        assert.equal(sent.split('\r\n\r\n')[1], Buffer.from(text).toString('latin1'));
      assert.deepEqual([server.requests.length, server.connections], [2, 1]);
    });
  }

  test('what cannot be a request is refused as not sent, and writes nothing', async () => {
    await using server = await openRawServer(answerOk);
    await using pool = poolOf(server.port);
    const refused = [
      { headers: ['a', 'b\r\nc: d'] },
      { headers: ['a\n', 'b'] },
      { headers: ['a', '\u010a'] },
      { headers: ['content-length', '0'] },
      { headers: ['transfer-encoding', 'chunked'] },
      { path: '/a b' },
      { path: '/a\r\nx: y' },
      { method: 'GE\r\nT' },
      { body: new ReadableStream() as never },
    ];
    for (const options of refused) {
      const call = new RecordedCall();
      dispatchTo(pool, options, call);
      assert.deepEqual(call.told, [], 'no error within the dispatch');
      await failureOf(call);
      assert.deepEqual([call.told, verdictOf(call)], [['error'], 'not-sent']);
    }
    assert.equal(server.connections, 0);
  });
});

suite('the call pool and its sockets', () => {
  test('requests beyond the sockets wait in order of arrival (R42)', async () => {
    const held: RawRequest[] = [];
    await using server = await openRawServer((request) => held.push(request));
    await using pool = poolOf(server.port, { connections: 1 });
    const calls = [1, 2, 3, 4].map((n) => dispatchTo(pool, { path: `/${n}` }));
    for (let done = 0; done < calls.length; done++) {
      await until(() => held.length === done + 1);
      assert.deepEqual(pool.stats(), {
        connected: 1,
        free: 0,
        pending: 3 - done,
        running: 1,
        queued: 3 - done,
      });
      held[done]?.socket.write(okWith('x'));
    }
    for (const call of calls) await bodyOf(call);
    assert.deepEqual(
      held.map(({ text }) => text.slice(0, 7)),
      ['POST /1', 'POST /2', 'POST /3', 'POST /4'],
    );
    assert.equal(server.connections, 1);
  });

  test('the socket that was used last is used first', async () => {
    const held: RawRequest[] = [];
    await using server = await openRawServer((request) => held.push(request));
    await using pool = poolOf(server.port);
    const both = [dispatchTo(pool), dispatchTo(pool)];
    await until(() => held.length === 2);
    for (const [index, call] of both.entries()) {
      held[index]?.socket.write(okWith('x'));
      await bodyOf(call);
      await untilRested();
    }
    const last = server.requests[1]?.connection;
    for (let round = 0; round < 3; round++) {
      const call = dispatchTo(pool);
      await until(() => held.length === 3 + round);
      held.at(-1)?.socket.write(okWith('x'));
      await bodyOf(call);
      await untilRested();
      assert.equal(held.at(-1)?.connection, last);
    }
  });

  test('requests of dispatch() and of request() have sockets of their own', async () => {
    const held: RawRequest[] = [];
    await using server = await openRawServer((request) => held.push(request));
    await using pool = poolOf(server.port, { connections: 1, controlConnections: 1 });
    const call = dispatchTo(pool);
    await until(() => held.length === 1);
    const response = pool.request({ method: 'GET', path: '/' });
    await until(() => held.length === 2);
    assert.deepEqual([pool.stats().connected, pool.stats().running], [2, 2]);
    for (const { socket } of held) socket.write(okWith('x'));
    assert.equal(await (await response).body.text(), 'x');
    await bodyOf(call);
  });

  test('an idle socket is closed after the keep-alive time, or before the server does', async () => {
    await using server = await openRawServer(({ socket, index }) =>
      socket.write(okWith('x', index === 1 ? '' : 'keep-alive: timeout=2\r\n')),
    );
    await using short = poolOf(server.port, { keepAliveMs: 60 });
    await bodyOf(dispatchTo(short));
    assert.equal(server.openConnections, 1);
    await until(() => server.openConnections === 0);
    assert.equal(short.stats().connected, 0);
    await using told = poolOf(server.port);
    await bodyOf(dispatchTo(told));
    // Timers of one process fire in the order of their times, however late all of them are.
    const whenOpen = [900, 1_900].map(async (ms) =>
      delay(ms, undefined).then(() => server.openConnections),
    );
    assert.deepEqual(await Promise.all(whenOpen), [1, 0]);
  });

  test('an answer may take longer than the keep-alive time, which only counts afterwards', async () => {
    await using server = await openRawServer(
      (request) => void setTimeout(() => answerOk(request), 150),
    );
    await using pool = poolOf(server.port, { keepAliveMs: 60 });
    assert.equal(await bodyOf(dispatchTo(pool)), '1');
    assert.equal(server.openConnections, 1);
    await until(() => server.openConnections === 0);
  });

  test('a socket whose keep-alive time is over while the event loop was busy is not used', async () => {
    const clock = new FakeClock();
    await using server = await openRawServer(answerOk);
    await using pool = poolOf(server.port, { clock });
    await bodyOf(dispatchTo(pool));
    await untilRested();
    clock.skip(30_000);
    await bodyOf(dispatchTo(pool));
    assert.equal(server.connections, 2);
  });

  test('a server that keeps a connection for a second or less gets a new one each time', async () => {
    await using server = await openRawServer(({ socket }) =>
      socket.write(okWith('x', 'keep-alive: timeout=1\r\n')),
    );
    await using pool = poolOf(server.port);
    for (let round = 0; round < 3; round++) await bodyOf(dispatchTo(pool));
    assert.equal(server.connections, 3);
  });

  const unfit: readonly (readonly [string, string])[] = [
    ['says that it closes', okWith('x', 'connection: close\r\n')],
    ['speaks HTTP/1.0', okWith('x').replace('1.1', '1.0')],
    ['sends more than its answer', `${okWith('x')}garbage`],
    ['announces a body where none may be', 'HTTP/1.1 204 No\r\ncontent-length: 3\r\n\r\n'],
  ];
  for (const [title, text] of unfit) {
    test(`a server that ${title} has answered, and its socket is not used again`, async () => {
      await using server = await openRawServer(({ socket }) => socket.write(text));
      await using pool = poolOf(server.port, { connections: 1 });
      const calls = [dispatchTo(pool), dispatchTo(pool)];
      for (const call of calls) await bodyOf(call);
      assert.equal(server.connections, 2);
    });
  }

  const dying: readonly (readonly [string, (request: RawRequest) => void])[] = [
    ['closes', ({ socket }) => socket.end()],
    ['resets', ({ socket }) => socket.resetAndDestroy()],
    ['sends something unasked', ({ socket }) => socket.write(okWith('not yours'))],
  ];
  for (const [title, end] of dying) {
    test(`an idle socket that the server ${title} is not used again`, async () => {
      await using server = await openRawServer(answerOk);
      await using pool = poolOf(server.port);
      await bodyOf(dispatchTo(pool));
      const [first] = server.requests;
      assert.ok(first !== undefined);
      end(first);
      await until(() => pool.stats().connected === 0);
      assert.equal(await bodyOf(dispatchTo(pool)), '2');
      assert.equal(server.connections, 2);
    });
  }

  test('a server that closes right behind its answers, without having said so, costs no request', async () => {
    await using server = await openRawServer(({ socket }) => socket.end(okWith('x')));
    await using pool = poolOf(server.port, { connections: 1 });
    const waiting = Array.from({ length: 50 }, () => dispatchTo(pool));
    for (const call of waiting) assert.equal(await bodyOf(call), 'x');
    for (let round = 0; round < 50; round++) assert.equal(await bodyOf(dispatchTo(pool)), 'x');
    assert.deepEqual([server.requests.length, server.connections], [100, 100]);
  });

  test('an end that arrived unseen on a socket that idled is seen before anything is written', async () => {
    const clock = new FakeClock();
    await using server = await openRawServer(answerOk);
    await using pool = poolOf(server.port, { clock });
    for (let round = 1; round <= 5; round++) {
      assert.equal(await bodyOf(dispatchTo(pool)), `${round}`);
      await untilRested();
      const closed = Promise.withResolvers<void>();
      server.requests.at(-1)?.socket.destroy().once('close', closed.resolve);
      // The FIN is on its way to this process, which has not looked since.
      await closed.promise;
      clock.skip(100);
    }
    assert.equal(server.connections, 5);
  });

  test('a socket that idled and still stands is used after that look', async () => {
    const clock = new FakeClock();
    await using server = await openRawServer(answerOk);
    await using pool = poolOf(server.port, { clock });
    await bodyOf(dispatchTo(pool));
    await untilRested();
    clock.skip(1_000);
    const call = dispatchTo(pool);
    assert.deepEqual([call.told, pool.stats().running], [[], 1]);
    await bodyOf(call);
    assert.equal(server.connections, 1);
  });

  test('a connection that fails costs nothing while another socket is about to be free', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    const held: ((error: Error, addresses: []) => void)[] = [];
    const resolve: ResolveHost = (host, options, callback) => {
      if (held.push(callback) === 1) resolvesTo('127.0.0.1')(host, options, callback);
    };
    const { pool } = openPool(remote.port, { resolve });
    await using _ = pool;
    const first = new RecordedCall((told) => {
      if (told === 'end') held[1]?.(Object.assign(new Error('gone'), { code: 'ENOTFOUND' }), []);
    });
    dispatchTo(pool, {}, first);
    const second = dispatchTo(pool);
    await bodyOf(first);
    assert.equal(await bodyOf(second), 'ok');
    assert.deepEqual([held.length, remote.connections], [2, 1]);
  });

  test('a connection that fails costs one waiting request each, and none hangs', async () => {
    const { pool } = openPool(await closedPort(), { connections: 2 });
    await using _ = pool;
    const calls = Array.from({ length: 20 }, () => dispatchTo(pool));
    for (const call of calls) {
      await failureOf(call);
      assert.deepEqual([call.told, verdictOf(call)], [['error'], 'not-sent']);
    }
  });
});
