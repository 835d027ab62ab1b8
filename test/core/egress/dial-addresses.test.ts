import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { suite, test } from 'node:test';

import { Dial, dialOrder } from '#core/egress/dial-addresses.ts';
import type { DialFailure } from '#core/egress/dial-addresses.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

/** A dial whose sockets connect and fail when the test says so. */
function scene(addresses: readonly string[]) {
  const clock = new FakeClock();
  const sockets = new Map<string, Socket>();
  const opened: Socket[] = [];
  const failures: string[] = [];
  const failed: DialFailure[] = [];
  const dial = new Dial({
    addresses,
    port: 443,
    clock,
    openSocket: ({ address }) => {
      const socket = new Socket();
      sockets.set(address, socket);
      return socket;
    },
    onOpened: (socket) => opened.push(socket),
    onFailure: ({ address }) => failures.push(address),
    onFailed: (first) => failed.push(first),
  });
  const fail = (address: string): boolean | undefined =>
    sockets.get(address)?.emit('error', new Error(address));
  return { clock, dial, sockets, opened, failures, failed, fail };
}

suite('the order of addresses', () => {
  const rows: readonly [readonly string[], readonly string[]][] = [
    [
      ['1.1.1.1', '1.1.1.2', '2001::1', '2001::2', '2001::3'],
      ['1.1.1.1', '2001::1', '1.1.1.2', '2001::2', '2001::3'],
    ],
    [
      ['2001::1', '1.1.1.1', '1.1.1.2'],
      ['2001::1', '1.1.1.1', '1.1.1.2'],
    ],
    [
      ['1.1.1.1', '1.1.1.1', '1.1.1.2'],
      ['1.1.1.1', '1.1.1.2'],
    ],
    [[], []],
  ];
  for (const [addresses, expected] of rows)
    test(`of ${addresses.join(' ') || 'none'}`, () => {
      assert.deepEqual(dialOrder(addresses), expected);
    });

  test('of a thousand addresses a few are dialled', () => {
    const many = Array.from({ length: 1000 }, (_, index) => `1.1.${index >> 8}.${index & 255}`);
    assert.equal(dialOrder(many).length, 8);
  });
});

suite('dialling', () => {
  test('a slow address gets company, and the first that connects is the one', () => {
    const { clock, dial, sockets, opened } = scene(['1.1.1.1', '1.1.1.2', '1.1.1.3']);
    dial.start();
    assert.deepEqual([...sockets.keys()], ['1.1.1.1']);
    clock.advance(250);
    assert.deepEqual([...sockets.keys()], ['1.1.1.1', '1.1.1.2']);
    sockets.get('1.1.1.2')?.emit('connect');
    assert.deepEqual(opened, [sockets.get('1.1.1.2')]);
    assert.equal(sockets.get('1.1.1.1')?.destroyed, true);
    assert.equal(opened[0]?.destroyed, false);
    assert.equal(clock.pendingTimers, 0);
  });

  test('a refused address makes way at once, and all that failed are named', () => {
    const { clock, dial, sockets, failures, failed, fail } = scene(['1.1.1.1', '1.1.1.2']);
    dial.start();
    fail('1.1.1.1');
    assert.deepEqual([...sockets.keys()], ['1.1.1.1', '1.1.1.2']);
    assert.deepEqual([failures, failed.length, dial.pending], [['1.1.1.1'], 0, ['1.1.1.2']]);
    fail('1.1.1.2');
    assert.deepEqual(failures, ['1.1.1.1', '1.1.1.2']);
    assert.deepEqual(
      failed.map(({ address }) => address),
      ['1.1.1.1'],
    );
    assert.equal(clock.pendingTimers, 0);
  });

  test('a failure counts only when no other attempt is on the way', () => {
    const { clock, dial, sockets, opened, failed, fail } = scene(['1.1.1.1', '1.1.1.2']);
    dial.start();
    clock.advance(250);
    fail('1.1.1.2');
    assert.equal(failed.length, 0);
    sockets.get('1.1.1.1')?.emit('connect');
    assert.deepEqual([opened.length, failed.length], [1, 0]);
  });

  test('what is given up leaves no socket and no timer, and tells nobody', () => {
    const { clock, dial, sockets, opened, failed } = scene(['1.1.1.1', '1.1.1.2']);
    dial.start();
    dial.cancel();
    sockets.get('1.1.1.1')?.emit('connect');
    sockets.get('1.1.1.1')?.emit('error', new Error('late'));
    assert.equal(sockets.get('1.1.1.1')?.destroyed, true);
    assert.deepEqual([opened.length, failed.length, clock.pendingTimers], [0, 0, 0]);
  });
});
