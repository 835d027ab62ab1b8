// The deadlines of all requests to one server, under one timer: a timer of its own for each request
// costs more than watching over them. It runs for the earliest deadline that was seen and then
// looks which ones are due, so that a request that ends in time costs a place in a list.

import type { Clock, TimerHandle } from '#core/clock.ts';
import { LiveSet } from '#core/live-set.ts';
import type { LiveItem } from '#core/live-set.ts';

export interface Timed extends LiveItem {
  /** Monotonic; may be put off at any time, and brought forward with `moved`. */
  deadlineMs: number;
  /** Called once, after which it is no longer watched. */
  onDeadline(): void;
}

export class Deadlines {
  readonly #clock: Clock;
  readonly #items = new LiveSet<Timed>();
  #timer: TimerHandle | undefined;
  #armedForMs = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(item: Timed): void {
    this.#items.add(item);
    this.#armFor(item.deadlineMs);
  }

  /** The deadline may be earlier than it was. */
  moved(item: Timed): void {
    if (item.slot !== -1) this.#armFor(item.deadlineMs);
  }

  remove(item: Timed): void {
    this.#items.delete(item);
    if (this.#items.size === 0) this.#disarm();
  }

  #armFor(deadlineMs: number): void {
    if (deadlineMs >= this.#armedForMs) return;
    this.#disarm();
    this.#armedForMs = deadlineMs;
    const leftMs = Math.max(0, deadlineMs - this.#clock.monotonicMs());
    this.#timer = this.#clock.setTimer(leftMs, this.#fire);
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#armedForMs = Infinity;
  }

  readonly #fire = (): void => {
    this.#disarm();
    const nowMs = this.#clock.monotonicMs();
    const due: Timed[] = [];
    let nextMs = Infinity;
    for (const item of this.#items.values()) {
      if (item.deadlineMs <= nowMs) due.push(item);
      else if (item.deadlineMs < nextMs) nextMs = item.deadlineMs;
    }
    this.#armFor(nextMs);
    this.#endAll(due, nowMs);
  };

  /** One that throws costs the others nothing; one that another has ended or put off is not due. */
  #endAll(due: Timed[], nowMs: number): void {
    const item = due.pop();
    if (item === undefined) return;
    try {
      if (item.deadlineMs > nowMs) this.moved(item);
      else if (item.slot !== -1) this.#end(item);
    } finally {
      this.#endAll(due, nowMs);
    }
  }

  #end(item: Timed): void {
    this.remove(item);
    item.onDeadline();
  }
}
