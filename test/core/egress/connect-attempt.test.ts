import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { suite, test } from 'node:test';

import type { ResolveHost } from '#core/egress/pinned-lookup.ts';
import {
  assertFailed,
  closedPort,
  goodCertificate,
  HOST,
  openPool,
  policyFor,
  resolvesTo,
} from '#test/support/egress-pool.ts';
import { exchange } from '#test/support/exchange-outcome.ts';
import { FakeClock } from '#test/support/fake-clock.ts';
import { openFakeRemote } from '#test/support/fake-remote.ts';

suite('a connection attempt', () => {
  test('the connect deadline covers DNS: a resolver that never answers (R39)', async () => {
    const clock = new FakeClock();
    const asked = Promise.withResolvers<void>();
    const { pool, decisions } = openPool(8443, { clock, resolve: () => asked.resolve() });
    await using _ = pool;
    const outcome = exchange(pool);
    await asked.promise;
    clock.advance(4000);
    assertFailed(await outcome, 'SERVER_UNAVAILABLE', 'dns-timeout');
    assert.deepEqual(
      decisions.map(({ verdict, stage, reason }) => [verdict, stage, reason]),
      [['failed', 'resolve', 'dns-timeout']],
    );
    assert.equal(clock.pendingTimers, 0);
  });

  test('an answer after the deadline is neither used nor recorded', async () => {
    const clock = new FakeClock();
    const asked = Promise.withResolvers<Parameters<ResolveHost>[2]>();
    const { pool, decisions } = openPool(8443, {
      clock,
      resolve: (_host, _options, callback) => asked.resolve(callback),
    });
    await using _ = pool;
    const outcome = exchange(pool);
    const answerLate = await asked.promise;
    clock.advance(4000);
    await outcome;
    answerLate(null, [{ address: '10.9.8.7', family: 4 }]);
    assert.equal(decisions.length, 1);
  });

  test('one connect deadline covers TLS: a listener that accepts and stays silent (R39)', async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => sockets.push(socket.on('error', () => {})));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const clock = new FakeClock();
    const { pool, decisions } = openPool((server.address() as AddressInfo).port, { clock });
    await using _ = pool;
    const outcome = exchange(pool);
    await once(server, 'connection');
    const [accepted] = sockets;
    assert.ok(accepted !== undefined);
    const ended = once(accepted.resume(), 'close');
    clock.advance(5000);
    assertFailed(await outcome, 'SERVER_UNAVAILABLE', 'connect-timeout');
    assert.deepEqual(
      decisions.map(({ reason, address }) => [reason, address]),
      [['connect-timeout', '127.0.0.1']],
    );
    await ended;
    assert.equal(clock.pendingTimers, 0);
    server.close();
  });

  test('a resolver that answers at once does not crash when the connection fails at once', async () => {
    const policy = policyFor(8443, {
      inClusterExceptions: [{ host: HOST, cidrs: ['fd12:3456::/32'], ports: [8443] }],
    });
    const { pool } = openPool(8443, {
      policy,
      connectTimeoutMs: 200,
      resolve: (_host, _options, callback) =>
        callback(null, [{ address: 'fd12:3456::1', family: 6 }]),
    });
    await using _ = pool;
    const outcome = await exchange(pool);
    assert.equal(outcome.kind === 'error' && outcome.class.kind, 'not-sent');
  });

  test('a resolver that throws or calls back twice settles the request once', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    const throwing = openPool(remote.port, {
      resolve: () => {
        throw new Error('resolver is broken');
      },
    }).pool;
    const twice = openPool(remote.port, {
      resolve: (_host, _options, callback) => {
        callback(null, [{ address: '127.0.0.1', family: 4 }]);
        callback(new Error('late'), []);
      },
    }).pool;
    await using _ = throwing;
    await using __ = twice;
    assertFailed(await exchange(throwing), 'SERVER_UNAVAILABLE', 'dns-failed');
    assert.equal((await exchange(twice)).kind, 'answer');
  });

  test('an empty answer fails closed', async () => {
    const { pool } = openPool(8443, { resolve: resolvesTo() });
    await using _ = pool;
    assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', 'no-address');
  });

  test('a closed port is a refused connection, also when every one of several addresses refuses', async () => {
    const port = await closedPort();
    for (const addresses of [['127.0.0.1'], ['127.0.0.1', '127.0.0.2']]) {
      const { pool, decisions } = openPool(port, { resolve: resolvesTo(...addresses) });
      await using _ = pool;
      assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', 'connect-refused');
      assert.equal(decisions[0]?.detail, 'ECONNREFUSED');
    }
  });

  test('an address that fails has its record, also when another one connects', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    const { pool, decisions } = openPool(remote.port, {
      resolve: resolvesTo('127.0.0.2', '127.0.0.1'),
    });
    await using _ = pool;
    assert.equal((await exchange(pool)).kind, 'answer');
    assert.deepEqual(
      decisions.map(({ verdict, reason, address }) => [verdict, reason, address]),
      [
        ['failed', 'connect-refused', '127.0.0.2'],
        ['allow', 'ok', '127.0.0.1'],
      ],
    );
  });

  test('an attempt that nobody waits for any more is given up, and its place is free again', async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => sockets.push(socket.on('error', () => {})));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const clock = new FakeClock();
    const { pool } = openPool((server.address() as AddressInfo).port, { clock, connections: 1 });
    await using _ = pool;
    const controller = new AbortController();
    const { signal } = controller;
    const request = pool.request({ method: 'GET', path: '/', signal });
    await once(server, 'connection');
    const ended = once(sockets[0]?.resume() ?? server, 'close');
    controller.abort();
    await assert.rejects(request, { name: 'AbortError' });
    await ended;
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(clock.pendingTimers, 0);
    assert.deepEqual(pool.stats(), { connected: 0, free: 0, pending: 0, running: 0, queued: 0 });
    server.close();
  });
});
