// Real time that runs faster by a factor, for cases that tell of a minute. Both ends of an
// exchange use the same one, so what is late stays late.

import { systemClock } from '#core/clock.ts';
import type { Clock } from '#core/clock.ts';

export function scaledClock(factor: number): Clock {
  return {
    nowMs: () => systemClock.nowMs(),
    monotonicMs: () => systemClock.monotonicMs() * factor,
    setTimer: (ms, fire, options) => systemClock.setTimer(ms / factor, fire, options),
    sleep: (ms, signal) => systemClock.sleep(ms / factor, signal),
  };
}
