// Waiting times that grow: 0.8 s, doubled up to 30 s, with jitter so that many operators do not return
// together, and forgotten after two healthy minutes. The numbers are client-go's.

import type { Clock } from '#core/clock.ts';

export interface BackoffOptions {
  readonly clock: Clock;
  readonly random?: () => number;
  readonly initialMs?: number;
  readonly maxMs?: number;
  readonly resetAfterMs?: number;
}

export class Backoff {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #initialMs: number;
  readonly #maxMs: number;
  readonly #resetAfterMs: number;
  #baseMs: number;
  #lastEndsAtMs: number | undefined;

  constructor(options: BackoffOptions) {
    this.#clock = options.clock;
    this.#random = options.random ?? Math.random;
    this.#initialMs = options.initialMs ?? 800;
    this.#maxMs = options.maxMs ?? 30_000;
    this.#resetAfterMs = options.resetAfterMs ?? 120_000;
    this.#baseMs = this.#initialMs;
  }

  /** The next wait: the base plus up to the same again. */
  nextMs(): number {
    const nowMs = this.#clock.monotonicMs();
    if (this.#lastEndsAtMs !== undefined && nowMs - this.#lastEndsAtMs >= this.#resetAfterMs)
      this.#baseMs = this.#initialMs;
    const delayMs = this.#baseMs * (1 + this.#random());
    this.#baseMs = Math.min(this.#maxMs, this.#baseMs * 2);
    this.#lastEndsAtMs = nowMs + delayMs;
    return delayMs;
  }
}
