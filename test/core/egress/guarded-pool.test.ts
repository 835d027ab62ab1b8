import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { EgressError } from '#core/egress/egress-error.ts';
import { assertFailed, closedPort, goodCertificate, openPool } from '#test/support/egress-pool.ts';
import { exchange } from '#test/support/exchange-outcome.ts';
import { FakeClock } from '#test/support/fake-clock.ts';
import { openFakeRemote } from '#test/support/fake-remote.ts';

suite('guarded pool and requests', () => {
  test('every request is judged, also on a kept-alive socket', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    const { pool, decisions } = openPool(remote.port);
    await using _ = pool;
    assert.equal((await exchange(pool)).kind, 'answer');
    const refused = [
      { options: { origin: 'https://other.test' }, reason: 'other-origin' },
      { options: { path: 'https://other.test/mcp' }, reason: 'request-form' },
      { options: { path: '' }, reason: 'request-form' },
      { options: { method: 'CONNECT' as const }, reason: 'request-form' },
      { options: { upgrade: 'websocket' }, reason: 'request-form' },
      { options: { headers: ['accept', '*/*', 'Host', 'other.test'] }, reason: 'host-header' },
      { options: { headers: { hOsT: 'other.test' } }, reason: 'host-header' },
      { options: { headers: new Map([['host', 'other.test']]) }, reason: 'host-header' },
    ];
    for (const { options, reason } of refused) {
      assertFailed(await exchange(pool, options), 'EGRESS_DENIED', reason);
      assert.equal(decisions.at(-1)?.reason, reason);
    }
    await assert.rejects(
      pool.request({ method: 'GET', path: '/', headers: { host: 'other.test' } }),
      EgressError,
    );
    // undici hands a socket out again one turn of the event loop after an answer.
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await exchange(pool, { headers: ['accept', '*/*'] })).kind, 'answer');
    assert.deepEqual([remote.requests.length, remote.connections], [2, 1]);
  });

  test('a redirect is an answer, never followed (R14)', async () => {
    await using other = await openFakeRemote();
    await using remote = await openFakeRemote({
      certificate: goodCertificate,
      answer: (_request, response) =>
        response.writeHead(307, { location: `http://127.0.0.1:${other.port}/` }).end(),
    });
    const { pool } = openPool(remote.port);
    await using _ = pool;
    const outcome = await exchange(pool);
    assert.equal(outcome.kind === 'answer' && outcome.status, 307);
    assert.equal(other.connections, 0);
  });

  test('a request whose answer is cut off is unknown and is not sent again', async () => {
    await using remote = await openFakeRemote({
      certificate: goodCertificate,
      answer: (request, response, index) =>
        index === 1 ? response.end('ok') : request.socket.destroy(),
    });
    const { pool } = openPool(remote.port);
    await using _ = pool;
    assert.equal((await exchange(pool)).kind, 'answer');
    const outcome = await exchange(pool, { idempotent: true });
    assert.equal(outcome.kind === 'error' && outcome.class.kind, 'unknown');
    assert.equal((await exchange(pool, { method: 'GET', body: null })).kind, 'error');
    assert.equal(remote.requests.length, 3);
  });

  test('an answer that stays away ends as unknown after the headers time-out', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate, answer: () => {} });
    const { pool } = openPool(remote.port, { headersTimeoutMs: 50 });
    await using _ = pool;
    const outcome = await exchange(pool);
    assert.deepEqual(outcome.kind === 'error' && outcome.class, {
      kind: 'unknown',
      code: 'CALL_TIMED_OUT',
      reason: 'headers-timeout',
    });
  });

  test('request() serves control-plane exchanges through the same door', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    const { pool } = openPool(remote.port);
    await using _ = pool;
    const response = await pool.request({
      method: 'GET',
      path: '/.well-known/x',
      headers: { accept: 'application/json' },
    });
    assert.deepEqual([response.statusCode, await response.body.text()], [200, 'ok']);
    assert.equal(remote.requests[0]?.url, '/.well-known/x');
  });
});

suite('guarded pool and its end', () => {
  test('close() lets a request in flight finish and refuses new ones as not sent', async () => {
    const arrived = Promise.withResolvers<() => void>();
    await using remote = await openFakeRemote({
      certificate: goodCertificate,
      answer: (_request, response) => arrived.resolve(() => response.end('late')),
    });
    const { pool } = openPool(remote.port);
    const inFlight = exchange(pool);
    const finish = await arrived.promise;
    const closed = pool.close();
    const refused = await exchange(pool);
    assert.deepEqual(refused.kind === 'error' && refused.class, {
      kind: 'not-sent',
      code: 'SERVER_UNAVAILABLE',
      reason: 'pool-closed',
    });
    finish();
    const outcome = await inFlight;
    assert.equal(outcome.kind === 'answer' && outcome.body, 'late');
    await closed;
    await pool.close();
    assert.deepEqual(pool.stats(), { connected: 0, free: 0, pending: 0, running: 0, queued: 0 });
  });

  test('destroy() ends a request in flight as unknown, even with an error that says not sent', async () => {
    const arrived = Promise.withResolvers<void>();
    await using remote = await openFakeRemote({
      certificate: goodCertificate,
      answer: () => arrived.resolve(),
    });
    const { pool } = openPool(remote.port, { connections: 1 });
    const inFlight = exchange(pool);
    const queued = exchange(pool);
    await arrived.promise;
    await pool.destroy(
      new EgressError('EGRESS_DENIED', { stage: 'resolve', reason: 'special-address' }),
    );
    const outcome = await inFlight;
    assert.equal(outcome.kind === 'error' && outcome.class.kind, 'unknown');
    const waiting = await queued;
    assert.equal(waiting.kind === 'error' && waiting.class.kind, 'not-sent');
    assert.equal(remote.requests.length, 1);
  });

  test('sockets, queue and timers return to zero after a churn of failures', async () => {
    const clock = new FakeClock();
    const port = await closedPort();
    const { pool } = openPool(port, { clock });
    await Promise.all(Array.from({ length: 300 }, () => exchange(pool)));
    assert.deepEqual(pool.stats(), { connected: 0, free: 0, pending: 0, running: 0, queued: 0 });
    assert.equal(clock.pendingTimers, 0);
    await pool.destroy();
  });

  test('no more sockets than allowed are open at once, and all close with the pool', async () => {
    const held: (() => void)[] = [];
    const full = Promise.withResolvers<void>();
    await using remote = await openFakeRemote({
      certificate: goodCertificate,
      answer(_request, response) {
        held.push(() => response.end('ok'));
        if (held.length === 3) full.resolve();
        else if (held.length > 3) response.end('ok');
      },
    });
    const { pool } = openPool(remote.port, { connections: 3 });
    const outcomes = Array.from({ length: 10 }, () => exchange(pool));
    await full.promise;
    assert.deepEqual([remote.openConnections, pool.stats().running], [3, 3]);
    for (const finish of held.slice()) finish();
    assert.ok((await Promise.all(outcomes)).every(({ kind }) => kind === 'answer'));
    assert.equal(remote.connections, 3);
    await pool.destroy();
    assert.equal(pool.stats().connected, 0);
  });

  test('two pools of one server share no connection', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    const first = openPool(remote.port).pool;
    const second = openPool(remote.port).pool;
    await using _ = first;
    await using __ = second;
    await exchange(first);
    await exchange(second);
    assert.equal(remote.connections, 2);
  });

  test('making a pool opens nothing', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    const { pool, decisions } = openPool(remote.port);
    await pool[Symbol.asyncDispose]();
    assert.deepEqual([remote.connections, decisions.length], [0, 0]);
  });
});
