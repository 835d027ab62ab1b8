import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { suite, test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { openTunnel } from '#core/egress/proxy-tunnel.ts';
import type { TunnelOutcome } from '#core/egress/proxy-tunnel.ts';
import { FakeClock } from '#test/support/fake-clock.ts';
import { answerUnasked, FakeConnectProxy, TRICKS } from '#test/support/fake-connect-proxy.ts';
import type { ProxyTrick } from '#test/support/fake-connect-proxy.ts';
import { until } from '#test/support/sidecar-fixture.ts';

const TARGET = { host: 'mcp.test', port: 443 };

async function tunnelThrough(
  proxy: FakeConnectProxy,
  clock = systemClock,
): Promise<{ readonly socket: Socket; readonly outcome: Promise<TunnelOutcome> }> {
  const socket = connect(proxy.port, '127.0.0.1');
  await once(socket, 'connect');
  const outcome = new Promise<TunnelOutcome>((resolve) => {
    openTunnel({ socket, target: TARGET, timeoutMs: 5_000, clock }, resolve);
  });
  return { socket, outcome };
}

suite('a tunnel', () => {
  const tricks: readonly [keyof typeof TRICKS, TunnelOutcome][] = [
    ['forbidden', { kind: 'denied', status: 403 }],
    ['authenticate', { kind: 'denied', status: 407 }],
    ['badGateway', { kind: 'failed', reason: 'proxy-error', status: 502 }],
    ['unavailable', { kind: 'failed', reason: 'proxy-error', status: 503 }],
    ['tooMany', { kind: 'failed', reason: 'proxy-error', status: 429 }],
    ['redirect', { kind: 'failed', reason: 'proxy-answer', status: 302 }],
    ['accepted', { kind: 'failed', reason: 'proxy-answer', status: 202 }],
    ['interim', { kind: 'failed', reason: 'proxy-answer', status: 100 }],
    ['chunked', { kind: 'failed', reason: 'proxy-answer', status: 200 }],
    ['garbage', { kind: 'failed', reason: 'proxy-answer' }],
    ['oldHttp', { kind: 'failed', reason: 'proxy-answer' }],
    ['bareLineFeeds', { kind: 'failed', reason: 'proxy-answer' }],
    ['foldedHeader', { kind: 'failed', reason: 'proxy-answer' }],
    ['headerFlood', { kind: 'failed', reason: 'proxy-answer' }],
    ['halfHeadThenEnd', { kind: 'failed', reason: 'proxy-gone' }],
    ['closesAtOnce', { kind: 'failed', reason: 'proxy-gone' }],
    ['resets', { kind: 'failed', reason: 'proxy-gone' }],
  ];
  for (const [trick, expected] of tricks)
    test(`${trick}: asked once, ends as ${expected.kind}, and the socket with it`, async () => {
      await using proxy = await FakeConnectProxy.start({ trick: TRICKS[trick] });
      const { socket, outcome } = await tunnelThrough(proxy);
      assert.deepEqual(await outcome, expected);
      assert.equal(socket.destroyed, true);
      await until(() => proxy.openConnections === 0);
      assert.deepEqual([proxy.connections, proxy.asked], [1, ['mcp.test:443']]);
    });

  for (const trick of ['silence', 'halfHead'] as const)
    test(`${trick}: is given up at its deadline`, async () => {
      const clock = new FakeClock();
      await using proxy = await FakeConnectProxy.start({ trick: TRICKS[trick] });
      const { socket, outcome } = await tunnelThrough(proxy, clock);
      await until(() => proxy.connects.length === 1);
      clock.advance(4_999);
      assert.equal(socket.destroyed, false);
      clock.advance(1);
      assert.deepEqual(await outcome, { kind: 'failed', reason: 'proxy-timeout' });
      assert.equal(socket.destroyed, true);
      assert.equal(clock.pendingTimers, 0);
    });

  test('an answer that was there before the question opens nothing', async () => {
    await using proxy = await FakeConnectProxy.start({ onConnection: answerUnasked });
    const socket = connect(proxy.port, '127.0.0.1');
    await once(socket, 'connect');
    await once(socket, 'readable');
    const outcome = await new Promise<TunnelOutcome>((resolve) => {
      openTunnel({ socket, target: TARGET, timeoutMs: 5_000, clock: systemClock }, resolve);
    });
    assert.deepEqual(outcome, { kind: 'failed', reason: 'proxy-answer' });
    assert.deepEqual(proxy.asked, []);
  });

  test('bytes behind the head of a 200 reach whoever uses the tunnel', async () => {
    const greeting: ProxyTrick = (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\nhello ');
      setTimeout(() => socket.end('world'), 20);
    };
    await using proxy = await FakeConnectProxy.start({ trick: greeting });
    const { socket, outcome } = await tunnelThrough(proxy);
    assert.deepEqual(await outcome, { kind: 'open' });
    const chunks: string[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk.toString('latin1')));
    await once(socket, 'close');
    assert.equal(chunks.join(''), 'hello world');
  });

  test('a head that comes byte by byte is read as well', async () => {
    const slow: ProxyTrick = (socket) => {
      const text = 'HTTP/1.1 200 OK\r\n\r\n';
      const next = (at: number): void => {
        if (at < text.length) socket.write(text.charAt(at), () => setImmediate(next, at + 1));
      };
      next(0);
    };
    await using proxy = await FakeConnectProxy.start({ trick: slow });
    const { socket, outcome } = await tunnelThrough(proxy);
    assert.deepEqual(await outcome, { kind: 'open' });
    socket.destroy();
  });

  test('that is given up closes its socket and calls nobody back', async () => {
    const clock = new FakeClock();
    await using proxy = await FakeConnectProxy.start({ trick: TRICKS.silence });
    const socket = connect(proxy.port, '127.0.0.1');
    await once(socket, 'connect');
    const outcomes: TunnelOutcome[] = [];
    const cancel = openTunnel({ socket, target: TARGET, timeoutMs: 5_000, clock }, (outcome) =>
      outcomes.push(outcome),
    );
    await until(() => proxy.connects.length === 1);
    cancel();
    await until(() => proxy.openConnections === 0);
    assert.deepEqual([outcomes, clock.pendingTimers], [[], 0]);
  });

  test('a socket that has gone before the question is a proxy that has gone', async () => {
    await using proxy = await FakeConnectProxy.start();
    const socket = connect(proxy.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
    const outcome = await new Promise<TunnelOutcome>((resolve) => {
      openTunnel({ socket, target: TARGET, timeoutMs: 5_000, clock: systemClock }, resolve);
    });
    assert.deepEqual(outcome, { kind: 'failed', reason: 'proxy-gone' });
  });
});
