// Bounds the calls of one partition that are on the wire, and those that may wait. A pool bounds
// sockets, not work; this bounds work. First come, first served, so one permit means strict order.
// Whoever is refused has sent nothing.

import type { Clock, TimerHandle } from '#core/clock.ts';

export type RefusalReason = 'queue-full' | 'queue-timeout' | 'closed';

export interface Waiter {
  /** A permit is yours; call release() once. */
  granted(): void;
  refused(reason: RefusalReason): void;
}

export interface SemaphoreOptions {
  readonly permits: number;
  readonly queueSize: number;
  readonly queueTimeoutMs: number;
  readonly clock: Clock;
}

interface Waiting {
  readonly waiter: Waiter;
  readonly expiresMs: number;
  isGone: boolean;
}

export class Semaphore {
  readonly #options: SemaphoreOptions;
  readonly #queue: Waiting[] = [];
  #inUse = 0;
  #waitingCount = 0;
  #isClosed = false;
  #timer: TimerHandle | undefined;

  constructor(options: SemaphoreOptions) {
    this.#options = options;
  }

  get inUse(): number {
    return this.#inUse;
  }

  get waiting(): number {
    return this.#waitingCount;
  }

  /** Calls back at once when a permit is free or the queue is full. The result withdraws from the queue. */
  acquire(waiter: Waiter): (() => void) | undefined {
    if (this.#isClosed) {
      waiter.refused('closed');
      return undefined;
    }
    if (this.#inUse < this.#options.permits && this.#waitingCount === 0) {
      this.#inUse += 1;
      waiter.granted();
      return undefined;
    }
    if (this.#waitingCount >= this.#options.queueSize) {
      waiter.refused('queue-full');
      return undefined;
    }
    return this.#enqueue(waiter);
  }

  release(): void {
    if (this.#inUse === 0) throw new TypeError('release() without a permit');
    this.#inUse -= 1;
    this.#grantNext();
  }

  /** Refuses all that wait and all that come; permits in use stay valid until released. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const waiting of this.#queue.splice(0)) {
      if (waiting.isGone) continue;
      this.#waitingCount -= 1;
      waiting.waiter.refused('closed');
    }
  }

  #enqueue(waiter: Waiter): () => void {
    const expiresMs = this.#options.clock.monotonicMs() + this.#options.queueTimeoutMs;
    const waiting: Waiting = { waiter, expiresMs, isGone: false };
    this.#queue.push(waiting);
    this.#waitingCount += 1;
    this.#armTimer();
    return () => {
      if (waiting.isGone) return;
      waiting.isGone = true;
      this.#waitingCount -= 1;
      this.#dropGone();
    };
  }

  #grantNext(): void {
    this.#dropGone();
    const next = this.#queue[0];
    if (next === undefined || this.#isClosed || this.#inUse >= this.#options.permits) return;
    this.#take(next);
    this.#inUse += 1;
    next.waiter.granted();
  }

  #take(waiting: Waiting): void {
    this.#queue.shift();
    waiting.isGone = true;
    this.#waitingCount -= 1;
    if (this.#waitingCount === 0) this.#disarmTimer();
  }

  #dropGone(): void {
    while (this.#queue[0]?.isGone === true) this.#queue.shift();
    if (this.#waitingCount === 0) this.#disarmTimer();
  }

  #disarmTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** All wait equally long, so the head always expires first: one timer serves the whole queue. */
  #armTimer(): void {
    if (this.#timer !== undefined) return;
    const head = this.#queue.find((waiting) => !waiting.isGone);
    if (head === undefined) return;
    const waitMs = Math.max(0, head.expiresMs - this.#options.clock.monotonicMs());
    this.#timer = this.#options.clock.setTimer(waitMs, () => this.#expire());
  }

  #expire(): void {
    this.#timer = undefined;
    const nowMs = this.#options.clock.monotonicMs();
    const expired: Waiting[] = [];
    while (
      this.#queue[0] !== undefined &&
      (this.#queue[0].isGone || this.#queue[0].expiresMs <= nowMs)
    ) {
      const head = this.#queue.shift();
      if (head === undefined || head.isGone) continue;
      head.isGone = true;
      this.#waitingCount -= 1;
      expired.push(head);
    }
    for (const waiting of expired) waiting.waiter.refused('queue-timeout');
    this.#armTimer();
  }
}
