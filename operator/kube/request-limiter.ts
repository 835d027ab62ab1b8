// The client-side rate limit of the API server client: a token bucket in which lease calls never wait,
// so that a burst of ordinary work cannot starve the renewal of the leader lease.
// It never reorders ordinary calls and never drops one. The default lets a first pass over 2,000 bindings,
// two writes each, end within a minute; the server's own fairness rules protect it from more.

import type { Clock, TimerHandle } from '#core/clock.ts';

export const QUERIES_PER_SECOND = 200;
export const BURST = 400;

export interface RequestLimiterOptions {
  readonly clock: Clock;
  readonly queriesPerSecond?: number;
  readonly burst?: number;
}

interface Waiter {
  readonly admit: () => void;
}

export class RequestLimiter {
  readonly #clock: Clock;
  readonly #queriesPerMs: number;
  readonly #burst: number;
  readonly #waiting = new Set<Waiter>();
  #tokens: number;
  #refilledAtMs: number;
  #timer: TimerHandle | undefined;

  constructor(options: RequestLimiterOptions) {
    this.#clock = options.clock;
    this.#queriesPerMs = (options.queriesPerSecond ?? QUERIES_PER_SECOND) / 1000;
    this.#burst = options.burst ?? BURST;
    this.#tokens = this.#burst;
    this.#refilledAtMs = options.clock.monotonicMs();
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Takes a token without waiting, into debt when there is none. For lease calls only. */
  passInFront(): void {
    this.#refill();
    this.#tokens -= 1;
  }

  /** Resolves when the call may be sent; rejects with the signal's reason when that aborts first. */
  async pass(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#refill();
    if (this.#waiting.size === 0 && this.#tokens >= 1) {
      this.#tokens -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.delete(waiter);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        admit: () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(waiter);
      this.#schedule();
    });
  }

  #refill(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(
      this.#burst,
      this.#tokens + (nowMs - this.#refilledAtMs) * this.#queriesPerMs,
    );
    this.#refilledAtMs = nowMs;
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#waiting.size === 0) return;
    const missing = Math.max(0, 1 - this.#tokens);
    this.#timer = this.#clock.setTimer(Math.ceil(missing / this.#queriesPerMs), () =>
      this.#admitWaiting(),
    );
  }

  #admitWaiting(): void {
    this.#timer = undefined;
    this.#refill();
    for (const waiter of this.#waiting) {
      if (this.#tokens < 1) break;
      this.#tokens -= 1;
      this.#waiting.delete(waiter);
      waiter.admit();
    }
    this.#schedule();
  }
}
