import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { suite, test } from 'node:test';

import { systemClock } from '#core/clock.ts';

suite('the system clock', () => {
  test('monotonic time never goes back', () => {
    let last = systemClock.monotonicMs();
    for (let index = 0; index < 1000; index += 1) {
      const now = systemClock.monotonicMs();
      assert.ok(now >= last);
      last = now;
    }
  });

  test('a timer fires once and not before its time', async () => {
    const startMs = systemClock.monotonicMs();
    let fired = 0;
    await new Promise<void>((resolve) => {
      systemClock.setTimer(20, () => {
        fired += 1;
        resolve();
      });
    });
    // Timers count from the start of the turn of the event loop that set them.
    assert.ok(systemClock.monotonicMs() - startMs >= 18);
    assert.equal(fired, 1);
  });

  test('a cancelled timer does not fire', async () => {
    let fired = false;
    const timer = systemClock.setTimer(1, () => {
      fired = true;
    });
    timer.cancel();
    await systemClock.sleep(10);
    assert.equal(fired, false);
  });

  test('sleep ends with the reason of its signal', async () => {
    const controller = new AbortController();
    const slept = systemClock.sleep(60_000, controller.signal);
    controller.abort(new Error('stop'));
    await assert.rejects(slept, /stop/);
    await assert.rejects(systemClock.sleep(60_000, controller.signal), /stop/);
  });

  test('sleep leaves no listener on a long-lived signal', async () => {
    const controller = new AbortController();
    for (let index = 0; index < 20; index += 1) await systemClock.sleep(0, controller.signal);
    assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
  });
});
