import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Deadlines } from '#sidecar/upstream/deadlines.ts';
import type { Timed } from '#sidecar/upstream/deadlines.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

function makeScene() {
  const clock = new FakeClock();
  const deadlines = new Deadlines(clock);
  const fired: string[] = [];
  const watch = (name: string, ms: number, onDeadline = () => {}): Timed => {
    const item: Timed = {
      slot: -1,
      deadlineMs: clock.monotonicMs() + ms,
      onDeadline() {
        fired.push(name);
        onDeadline();
      },
    };
    deadlines.add(item);
    return item;
  };
  return { clock, deadlines, fired, watch };
}

test('each request ends at its own deadline, once, whatever the order', () => {
  const { clock, fired, watch } = makeScene();
  watch('late', 300);
  watch('early', 100);
  watch('middle', 200);
  const seen = [99, 1, 99, 1, 99, 1, 1_000].map((ms) => {
    clock.advance(ms);
    return fired.join();
  });
  const whole = 'early,middle,late';
  assert.deepEqual(seen, ['', 'early', 'early', 'early,middle', 'early,middle', whole, whole]);
  assert.equal(clock.pendingTimers, 0);
});

test('one timer serves all, and none is left when the last request has ended', () => {
  const { clock, deadlines, fired, watch } = makeScene();
  const items = [300, 100, 200].map((ms) => watch(String(ms), ms));
  assert.equal(clock.pendingTimers, 1);
  for (const item of items) deadlines.remove(item);
  assert.equal(clock.pendingTimers, 0);
  clock.advance(1_000);
  assert.deepEqual(fired, []);
});

test('a deadline that is put off is met later, one that is brought forward sooner', () => {
  const { clock, deadlines, fired, watch } = makeScene();
  const [off, forward] = [watch('off', 100), watch('forward', 1_000)];
  off.deadlineMs += 400;
  forward.deadlineMs -= 800;
  deadlines.moved(forward);
  clock.advance(199);
  assert.deepEqual(fired, []);
  clock.advance(1);
  assert.deepEqual(fired, ['forward']);
  clock.advance(300);
  assert.deepEqual(fired, ['forward', 'off']);
});

test('one that throws costs the others nothing', () => {
  const { clock, fired, watch } = makeScene();
  watch('a', 100);
  watch('bad', 100, () => {
    throw new Error('a bug');
  });
  watch('b', 100);
  watch('later', 200);
  assert.throws(() => clock.advance(100), /a bug/);
  assert.deepEqual(fired.toSorted(), ['a', 'b', 'bad']);
  clock.advance(100);
  assert.equal(fired.at(-1), 'later');
});

test('a deadline may add and remove others while it is met', () => {
  const { clock, deadlines, fired, watch } = makeScene();
  const other = watch('other', 150);
  watch('first', 100, () => {
    deadlines.remove(other);
    watch('added', 50);
  });
  clock.advance(100);
  clock.advance(50);
  assert.deepEqual(fired, ['first', 'added']);
  assert.equal(clock.pendingTimers, 0);
});

test('one that another has ended or put off at the same moment is not met', () => {
  const { clock, deadlines, fired, watch } = makeScene();
  const others = [watch('a', 100), watch('b', 100), watch('c', 100)];
  for (const item of others) {
    item.onDeadline = () => {
      fired.push('one');
      const [ended, putOff] = others.filter((other) => other !== item);
      assert.ok(ended !== undefined && putOff !== undefined);
      deadlines.remove(ended);
      putOff.deadlineMs += 50;
      putOff.onDeadline = () => void fired.push('put off');
    };
  }
  clock.advance(100);
  assert.deepEqual(fired, ['one']);
  clock.advance(50);
  assert.deepEqual(fired, ['one', 'put off']);
  assert.equal(clock.pendingTimers, 0);
});
