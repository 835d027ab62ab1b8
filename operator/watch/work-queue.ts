// The queue between informers and reconcilers, with client-go's semantics: a key that is already waiting
// is not added twice, no key is ever processed twice at the same time, and a key added while it is being
// processed comes again afterwards. Higher priorities first; the objects of a first list get a low one, so
// that a change made by a person does not wait behind a restart.

import type { Clock, TimerHandle } from '#core/clock.ts';
import { RetryLimiter } from './retry-limiter.ts';
import type { RetryLimits } from './retry-limiter.ts';

export const NORMAL_PRIORITY = 0;
export const INITIAL_LIST_PRIORITY = -100;

/** Feeds the `workqueue_*` metrics; seconds, as client-go has them. */
export interface WorkQueueMetrics {
  added(): void;
  depth(keys: number): void;
  waited(seconds: number): void;
  worked(seconds: number): void;
  retried(): void;
}

export interface WorkQueueOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly metrics?: WorkQueueMetrics;
  readonly retryLimits?: RetryLimits;
}

export interface AddOptions {
  readonly priority?: number;
}

interface Pending {
  priority: number;
  readonly sinceMs: number;
}

interface Delayed {
  readonly atMs: number;
  readonly priority: number;
  readonly timer: TimerHandle;
}

export class WorkQueue {
  readonly name: string;
  readonly #clock: Clock;
  readonly #metrics: WorkQueueMetrics | undefined;
  readonly #retries: RetryLimiter;
  /** Ready to be taken, in order of arrival within each priority. */
  readonly #ready = new Map<number, Set<string>>();
  /** Every key that has to be processed (again): ready ones, and those that wait for `done`. */
  readonly #dirty = new Map<string, Pending>();
  readonly #delayed = new Map<string, Delayed>();
  /** Key to the monotonic time at which its processing began. */
  readonly #processing = new Map<string, number>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #isShutDown = false;

  constructor(options: WorkQueueOptions) {
    this.name = options.name;
    this.#clock = options.clock;
    this.#metrics = options.metrics;
    this.#retries = new RetryLimiter(options.clock, options.retryLimits);
  }

  /** Keys that could be taken now. */
  get depth(): number {
    let depth = 0;
    for (const keys of this.#ready.values()) depth += keys.size;
    return depth;
  }

  /** Nothing ready, nothing being processed; delayed keys do not count. */
  get isIdle(): boolean {
    return this.#dirty.size === 0 && this.#processing.size === 0;
  }

  /** Makes `key` ready now; a later time that it was waiting for is dropped. */
  add(key: string, options: AddOptions = {}): void {
    if (this.#isShutDown) return;
    const priority = Math.max(
      options.priority ?? NORMAL_PRIORITY,
      this.#dropDelayed(key)?.priority ?? Number.NEGATIVE_INFINITY,
    );
    const pending = this.#dirty.get(key);
    if (pending !== undefined) {
      this.#raise(key, pending, priority);
      return;
    }
    this.#metrics?.added();
    this.#dirty.set(key, { priority, sinceMs: this.#clock.monotonicMs() });
    if (!this.#processing.has(key)) this.#makeReady(key, priority);
  }

  /** Makes `key` ready after `ms`. Of several times the earliest counts, of several priorities the highest. */
  addAfter(key: string, ms: number, options: AddOptions = {}): void {
    if (this.#isShutDown) return;
    if (ms <= 0) {
      this.add(key, options);
      return;
    }
    if (this.#dirty.has(key)) {
      this.add(key, options);
      return;
    }
    const before = this.#dropDelayed(key);
    const atMs = Math.min(this.#clock.monotonicMs() + ms, before?.atMs ?? Number.POSITIVE_INFINITY);
    const priority = Math.max(
      options.priority ?? NORMAL_PRIORITY,
      before?.priority ?? Number.NEGATIVE_INFINITY,
    );
    const timer = this.#clock.setTimer(Math.max(0, atMs - this.#clock.monotonicMs()), () =>
      this.add(key, { priority }),
    );
    this.#delayed.set(key, { atMs, priority, timer });
  }

  /** Makes `key` ready again after its growing wait. Returns that wait. */
  addRateLimited(key: string, options: AddOptions = {}): number {
    const delayMs = this.#retries.nextDelayMs(key);
    this.#metrics?.retried();
    this.addAfter(key, delayMs, options);
    return delayMs;
  }

  /** The key did well: its next failure waits briefly again. */
  forget(key: string): void {
    this.#retries.forget(key);
  }

  failuresOf(key: string): number {
    return this.#retries.failuresOf(key);
  }

  /** The next key; undefined once the queue is shut down. Every key taken must be given back with `done`. */
  take(): Promise<string | undefined> {
    if (this.#isShutDown) return Promise.resolve(undefined);
    const key = this.#nextReady();
    if (key !== undefined) {
      this.#begin(key);
      return Promise.resolve(key);
    }
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  /** Processing of `key` has ended; it becomes ready again when it was added meanwhile. */
  done(key: string): void {
    const startedAtMs = this.#processing.get(key);
    if (startedAtMs === undefined)
      throw new TypeError(`done(${JSON.stringify(key)}) without take()`);
    this.#processing.delete(key);
    this.#metrics?.worked((this.#clock.monotonicMs() - startedAtMs) / 1000);
    const pending = this.#dirty.get(key);
    if (pending !== undefined) this.#makeReady(key, pending.priority);
  }

  /** Nothing is handed out any more; waiting takers get undefined. Keys in work may still be `done`. */
  shutDown(): void {
    this.#isShutDown = true;
    for (const { timer } of this.#delayed.values()) timer.cancel();
    this.#delayed.clear();
    this.#ready.clear();
    this.#dirty.clear();
    this.#metrics?.depth(0);
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  /** Seconds of work of all keys that are being processed now. */
  unfinishedWorkSeconds(): number {
    const nowMs = this.#clock.monotonicMs();
    let total = 0;
    for (const startedAtMs of this.#processing.values()) total += nowMs - startedAtMs;
    return total / 1000;
  }

  longestRunningSeconds(): number {
    const oldestMs = Math.min(...this.#processing.values());
    return Number.isFinite(oldestMs) ? (this.#clock.monotonicMs() - oldestMs) / 1000 : 0;
  }

  #raise(key: string, pending: Pending, priority: number): void {
    if (priority <= pending.priority) return;
    const isReady = this.#ready.get(pending.priority)?.delete(key) === true;
    pending.priority = priority;
    if (isReady) this.#bucket(priority).add(key);
  }

  #makeReady(key: string, priority: number): void {
    const taker = this.#takers.shift();
    if (taker !== undefined) {
      this.#begin(key);
      taker(key);
      return;
    }
    this.#bucket(priority).add(key);
    this.#metrics?.depth(this.depth);
  }

  #nextReady(): string | undefined {
    const priorities = [...this.#ready.entries()]
      .filter(([, keys]) => keys.size > 0)
      .map(([priority]) => priority);
    if (priorities.length === 0) return undefined;
    const keys = this.#bucket(Math.max(...priorities));
    const first = keys.values().next();
    if (first.done === true) return undefined;
    keys.delete(first.value);
    this.#metrics?.depth(this.depth);
    return first.value;
  }

  #begin(key: string): void {
    const nowMs = this.#clock.monotonicMs();
    const sinceMs = this.#dirty.get(key)?.sinceMs ?? nowMs;
    this.#metrics?.waited((nowMs - sinceMs) / 1000);
    this.#dirty.delete(key);
    this.#processing.set(key, nowMs);
  }

  #bucket(priority: number): Set<string> {
    const keys = this.#ready.get(priority) ?? new Set<string>();
    this.#ready.set(priority, keys);
    return keys;
  }

  #dropDelayed(key: string): Delayed | undefined {
    const delayed = this.#delayed.get(key);
    delayed?.timer.cancel();
    this.#delayed.delete(key);
    return delayed;
  }
}
