// Runs one reconcile function for the keys of one queue: never twice at the same time for a key, with a
// time limit, and with the three ends that a run can have: good (maybe again later), failed (again after
// a growing wait), hopeless until something changes (TerminalError: not again).
// It knows nothing about objects; the reconcile function reads informers and writes.

import { randomUUID } from 'node:crypto';
import type { Logger } from '#core/telemetry/log.ts';
import type { Clock } from '#core/clock.ts';
import { errorFields } from '#operator/kube/error-fields.ts';
import { CallDeadline } from '#operator/kube/call-deadline.ts';
import type { WorkQueue } from './work-queue.ts';

/** The input is wrong and trying again cannot help; the next change of the object does. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}

export interface ReconcileResult {
  /** Run again after this time even when nothing changes. */
  readonly requeueAfterMs?: number;
}

export interface ReconcileContext {
  /** Aborts when the run's time is up or the loop stops hard. */
  readonly signal: AbortSignal;
  /** Carries `reconcileID` and the key. */
  readonly log: Logger;
  readonly reconcileId: string;
}

export type Reconcile = (
  key: string,
  context: ReconcileContext,
) => Promise<ReconcileResult | undefined>;

export type ReconcileOutcome = 'success' | 'error' | 'requeue_after';

/** Feeds the `controller_runtime_*` metrics. */
export interface ControllerMetrics {
  finished(outcome: ReconcileOutcome, seconds: number): void;
  failed(kind: 'error' | 'terminal' | 'panic' | 'timeout'): void;
  activeWorkers(workers: number): void;
  maxConcurrent(workers: number): void;
}

export interface ControllerLoopOptions {
  readonly name: string;
  readonly queue: WorkQueue;
  readonly reconcile: Reconcile;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: ControllerMetrics;
  /** Keys at the same time; default 1. */
  readonly concurrency?: number;
  /** Of one run; default 60 s. */
  readonly timeoutMs?: number;
}

export class ControllerLoop {
  readonly #options: ControllerLoopOptions;
  readonly #concurrency: number;
  readonly #hardStop = new AbortController();
  #running: Promise<void> | undefined;
  #active = 0;

  constructor(options: ControllerLoopOptions) {
    this.#options = options;
    this.#concurrency = options.concurrency ?? 1;
  }

  /** Starts the workers. The informers that the reconcile function reads must have synced. */
  start(): void {
    if (this.#running !== undefined) return;
    this.#options.metrics?.maxConcurrent(this.#concurrency);
    const workers = Array.from({ length: this.#concurrency }, () => this.#work());
    this.#running = Promise.all(workers).then(() => undefined);
  }

  /** Takes no new keys; runs that have begun get `graceMs` before their signal aborts. */
  async stop(graceMs = 20_000): Promise<void> {
    this.#options.queue.shutDown();
    const timer = this.#options.clock.setTimer(graceMs, () =>
      this.#hardStop.abort(new Error('the controller was stopped')),
    );
    await this.#running;
    timer.cancel();
  }

  async #work(): Promise<void> {
    const { queue, metrics } = this.#options;
    for (let key = await queue.take(); key !== undefined; key = await queue.take()) {
      metrics?.activeWorkers((this.#active += 1));
      try {
        await this.#runOnce(key);
      } finally {
        queue.done(key);
        metrics?.activeWorkers((this.#active -= 1));
      }
    }
  }

  async #runOnce(key: string): Promise<void> {
    const { queue, clock, reconcile, metrics } = this.#options;
    const startedAtMs = clock.monotonicMs();
    using deadline = new CallDeadline({
      clock,
      timeoutMs: this.#options.timeoutMs ?? 60_000,
      signal: this.#hardStop.signal,
    });
    const reconcileId = randomUUID();
    const log = this.#options.log.child({
      controller: this.#options.name,
      key,
      reconcileID: reconcileId,
    });
    let outcome: ReconcileOutcome = 'success';
    try {
      const result = await reconcile(key, { signal: deadline.signal, log, reconcileId });
      queue.forget(key);
      if (result?.requeueAfterMs !== undefined) {
        outcome = 'requeue_after';
        queue.addAfter(key, result.requeueAfterMs);
      }
    } catch (error) {
      outcome = 'error';
      this.#onFailure(key, { error, log, isTimedOut: deadline.isTimedOut });
    }
    metrics?.finished(outcome, (clock.monotonicMs() - startedAtMs) / 1000);
  }

  #onFailure(key: string, failure: { error: unknown; log: Logger; isTimedOut: boolean }): void {
    const { queue, metrics } = this.#options;
    const { error, log } = failure;
    metrics?.failed('error');
    if (failure.isTimedOut) metrics?.failed('timeout');
    if (error instanceof TerminalError) {
      metrics?.failed('terminal');
      queue.forget(key);
      log.error(
        { err: error, detail: error.message },
        'reconcile failed and is not tried again until something changes',
      );
      return;
    }
    if (
      error instanceof TypeError ||
      error instanceof ReferenceError ||
      error instanceof RangeError
    )
      metrics?.failed('panic');
    const retryInMs = Math.round(queue.addRateLimited(key));
    log.error(
      { ...errorFields(error), failures: queue.failuresOf(key), retryInMs },
      'reconcile failed',
    );
  }
}
