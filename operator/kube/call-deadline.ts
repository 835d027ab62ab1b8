// One AbortSignal for one call: aborted by the caller's signal or when the time is up, whichever is first.
// It unlinks itself from the caller's signal when the call is over, so that a signal which lives as long
// as the process does not collect listeners.

import type { Clock, TimerHandle } from '#core/clock.ts';

export interface CallDeadlineOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export class CallDeadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal | undefined;
  readonly #timer: TimerHandle;
  #isTimedOut = false;

  constructor(options: CallDeadlineOptions) {
    this.#parent = options.signal;
    this.#timer = options.clock.setTimer(options.timeoutMs, () => {
      this.#isTimedOut = true;
      this.#controller.abort(new Error(`no answer within ${String(options.timeoutMs)} ms`));
    });
    if (options.signal?.aborted === true) this.#onParentAbort();
    else options.signal?.addEventListener('abort', this.#onParentAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isTimedOut(): boolean {
    return this.#isTimedOut;
  }

  /** The time no longer counts (a watch has begun); the caller's signal still does. */
  disarm(): void {
    this.#timer.cancel();
  }

  [Symbol.dispose](): void {
    this.#timer.cancel();
    this.#parent?.removeEventListener('abort', this.#onParentAbort);
  }

  readonly #onParentAbort = (): void => {
    this.#controller.abort(this.#parent?.reason);
  };
}
