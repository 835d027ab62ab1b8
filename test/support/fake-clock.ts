// A clock that moves only when a test moves it. Timers fire in the order of their times;
// promises that a timer resolves run when the test awaits next (see advanceAsync).

import type { Clock, TimerHandle } from '#core/clock.ts';

interface FakeTimer {
  readonly atMs: number;
  readonly order: number;
  readonly fire: () => void;
}

export class FakeClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;
  #timers: FakeTimer[] = [];
  #order = 0;

  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#wallMs = startMs;
  }

  get pendingTimers(): number {
    return this.#timers.length;
  }

  nowMs(): number {
    return this.#wallMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  setTimer(ms: number, fire: () => void): TimerHandle {
    this.#order += 1;
    const timer: FakeTimer = { atMs: this.#monotonicMs + ms, order: this.#order, fire };
    this.#timers.push(timer);
    return { cancel: () => void (this.#timers = this.#timers.filter((other) => other !== timer)) };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      const timer = this.setTimer(ms, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
      const onAbort = (): void => {
        timer.cancel();
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Moves both times on and fires what is due, also timers that were set on the way. */
  advance(ms: number): void {
    const endMs = this.#monotonicMs + ms;
    for (let due = this.#nextDue(endMs); due !== undefined; due = this.#nextDue(endMs)) {
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#moveTo(Math.max(due.atMs, this.#monotonicMs));
      due.fire();
    }
    this.#moveTo(endMs);
  }

  /** Moves both times on while no timer fires, as in a stopped process; the next advance fires them. */
  skip(ms: number): void {
    this.#moveTo(this.#monotonicMs + ms);
  }

  /** Like advance, in small steps that let promises settle in between. */
  async advanceAsync(ms: number, steps = 20): Promise<void> {
    for (let step = 0; step < steps; step += 1) {
      this.advance(ms / steps);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #moveTo(monotonicMs: number): void {
    this.#wallMs += monotonicMs - this.#monotonicMs;
    this.#monotonicMs = monotonicMs;
  }

  #nextDue(endMs: number): FakeTimer | undefined {
    const due = this.#timers.filter((timer) => timer.atMs <= endMs);
    due.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
    return due[0];
  }
}
