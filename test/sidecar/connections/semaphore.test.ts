import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { Semaphore, type RefusalReason } from '#sidecar/connections/semaphore.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

function makeSemaphore(permits: number, queueSize = 100, queueTimeoutMs = 1_000) {
  const clock = new FakeClock();
  const log: string[] = [];
  const semaphore = new Semaphore({ permits, queueSize, queueTimeoutMs, clock });
  const ask = (name: string): (() => void) | undefined =>
    semaphore.acquire({
      granted: () => log.push(`+${name}`),
      refused: (reason: RefusalReason) => log.push(`-${name}:${reason}`),
    });
  return { clock, log, semaphore, ask };
}

test('permits_are_granted_at_once_while_there_are_any', () => {
  const { log, ask, semaphore } = makeSemaphore(2);
  ask('a');
  ask('b');
  ask('c');
  assert.deepEqual(log, ['+a', '+b']);
  assert.equal(semaphore.waiting, 1);
});

test('one_permit_means_strict_order_of_arrival (R42)', () => {
  const { log, ask, semaphore } = makeSemaphore(1);
  for (const name of ['a', 'b', 'c', 'd']) ask(name);
  for (let i = 0; i < 3; i += 1) semaphore.release();
  assert.deepEqual(log, ['+a', '+b', '+c', '+d']);
});

test('who_waits_past_the_queue_timeout_is_refused_and_the_permit_goes_to_the_next (R39) (R40)', () => {
  const { clock, log, ask, semaphore } = makeSemaphore(1);
  ask('a');
  ask('b');
  clock.advance(600);
  ask('c');
  clock.advance(400);
  assert.deepEqual(log, ['+a', '-b:queue-timeout']);
  semaphore.release();
  assert.deepEqual(log, ['+a', '-b:queue-timeout', '+c']);
  assert.equal(semaphore.inUse, 1);
  clock.advance(10_000);
  assert.equal(clock.pendingTimers, 0);
});

test('a_full_queue_refuses_at_once', () => {
  const { log, ask } = makeSemaphore(1, 1);
  ask('a');
  ask('b');
  ask('c');
  assert.deepEqual(log, ['+a', '-c:queue-full']);
});

test('withdrawing_from_the_queue_leaves_no_trace', () => {
  const { clock, log, ask, semaphore } = makeSemaphore(1);
  ask('a');
  const withdraw = ask('b');
  ask('c');
  withdraw?.();
  withdraw?.();
  assert.equal(semaphore.waiting, 1);
  semaphore.release();
  semaphore.release();
  clock.advance(5_000);
  assert.deepEqual(log, ['+a', '+c']);
  assert.equal(semaphore.inUse, 0);
});

test('closing_refuses_those_who_wait_and_those_who_come', () => {
  const { clock, log, ask, semaphore } = makeSemaphore(1);
  ask('a');
  ask('b');
  semaphore.close();
  ask('c');
  semaphore.release();
  assert.deepEqual(log, ['+a', '-b:closed', '-c:closed']);
  assert.equal(clock.pendingTimers, 0);
});

test('a_release_without_a_permit_is_a_bug_and_says_so', () => {
  assert.throws(() => makeSemaphore(1).semaphore.release(), TypeError);
});

test('no_interleaving_exceeds_the_permits_or_loses_one', () => {
  const step = fc.oneof(
    fc.constant({ kind: 'ask' } as const),
    fc.constant({ kind: 'release' } as const),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 400 }) }),
    fc.record({ kind: fc.constant('withdraw' as const), at: fc.nat(30) }),
  );
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 4 }),
      fc.array(step, { maxLength: 60 }),
      (permits, steps) => {
        const { clock, log, ask, semaphore } = makeSemaphore(permits, 5, 300);
        const withdrawals: ((() => void) | undefined)[] = [];
        let asked = 0;
        let withdrawn = 0;
        for (const action of steps) {
          if (action.kind === 'ask') withdrawals.push(ask(String((asked += 1))));
          else if (action.kind === 'release' && semaphore.inUse > 0) semaphore.release();
          else if (action.kind === 'wait') clock.advance(action.ms);
          else if (action.kind === 'withdraw') {
            const before = semaphore.waiting;
            withdrawals[action.at]?.();
            withdrawn += before - semaphore.waiting;
          }
          assert.ok(semaphore.inUse <= permits);
          assert.ok(
            semaphore.inUse === permits || semaphore.waiting === 0,
            'nobody waits while a permit is free',
          );
        }
        assert.equal(log.length + withdrawn + semaphore.waiting, asked);
        const granted = log
          .filter((line) => line.startsWith('+'))
          .map((line) => Number(line.slice(1)));
        assert.deepEqual(
          granted,
          granted.toSorted((a, b) => a - b),
        );
      },
    ),
  );
});
