// When a failed key may be tried again: the later of a per-key exponential (500 ms to 10 minutes) and a
// token bucket over all keys (10 per second, burst 100), so that a broken dependency of 2,000 keys does
// not become 2,000 retries at once.

import type { Clock } from '#core/clock.ts';

export interface RetryLimits {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly retriesPerSecond: number;
  readonly burst: number;
}

export const DEFAULT_RETRY_LIMITS: RetryLimits = {
  initialMs: 500,
  maxMs: 600_000,
  retriesPerSecond: 10,
  burst: 100,
};

export class RetryLimiter {
  readonly #clock: Clock;
  readonly #limits: RetryLimits;
  readonly #failures = new Map<string, number>();
  #tokens: number;
  #refilledAtMs: number;

  constructor(clock: Clock, limits: RetryLimits = DEFAULT_RETRY_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
    this.#tokens = limits.burst;
    this.#refilledAtMs = clock.monotonicMs();
  }

  /** Counts a failure of `key` and says how long to wait before its next try. */
  nextDelayMs(key: string): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    const exponentialMs = Math.min(
      this.#limits.maxMs,
      this.#limits.initialMs * 2 ** Math.min(failures, 40),
    );
    return Math.max(exponentialMs, this.#reserveMs());
  }

  failuresOf(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }

  #reserveMs(): number {
    const nowMs = this.#clock.monotonicMs();
    const perMs = this.#limits.retriesPerSecond / 1000;
    this.#tokens = Math.min(
      this.#limits.burst,
      this.#tokens + (nowMs - this.#refilledAtMs) * perMs,
    );
    this.#refilledAtMs = nowMs;
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : -this.#tokens / perMs;
  }
}
