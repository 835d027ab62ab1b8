// Ends one watch from outside: when it was silent for too long, when its safety relist is due, or when the
// informer stops. It says which of them it was; it knows nothing about frames.

import type { Clock, TimerHandle } from '#core/clock.ts';
import type { WatchEnd } from './watch-policy.ts';

export interface WatchGuardOptions {
  readonly clock: Clock;
  readonly parent: AbortSignal;
  /** Monotonic. */
  readonly safetyRelistAtMs: number;
}

export class WatchGuard implements Disposable {
  readonly #clock: Clock;
  readonly #parent: AbortSignal;
  readonly #controller = new AbortController();
  readonly #safetyTimer: TimerHandle;
  #silenceTimer: TimerHandle | undefined;
  #silentAtMs = Number.POSITIVE_INFINITY;
  #end: WatchEnd | undefined;

  constructor(options: WatchGuardOptions) {
    this.#clock = options.clock;
    this.#parent = options.parent;
    if (options.parent.aborted) this.#onParentAbort();
    else options.parent.addEventListener('abort', this.#onParentAbort, { once: true });
    const leftMs = Math.max(0, options.safetyRelistAtMs - options.clock.monotonicMs());
    this.#safetyTimer = options.clock.setTimer(leftMs, () =>
      this.#endWith({ kind: 'safety-relist-due' }),
    );
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Why the guard ended the watch; undefined when it did not. */
  get end(): WatchEnd | undefined {
    return this.#end;
  }

  /** Something must arrive within `ms` from now; replaces the expectation before. */
  expectWithin(ms: number): void {
    this.#silentAtMs = this.#clock.monotonicMs() + ms;
    this.#silenceTimer ??= this.#clock.setTimer(ms, () => this.#onSilenceTimer());
  }

  [Symbol.dispose](): void {
    this.#safetyTimer.cancel();
    this.#silenceTimer?.cancel();
    this.#parent.removeEventListener('abort', this.#onParentAbort);
  }

  /** One timer serves many events: when it fires early, it only moves on. */
  #onSilenceTimer(): void {
    this.#silenceTimer = undefined;
    const leftMs = this.#silentAtMs - this.#clock.monotonicMs();
    if (leftMs <= 0) this.#endWith({ kind: 'stalled' });
    else this.#silenceTimer = this.#clock.setTimer(leftMs, () => this.#onSilenceTimer());
  }

  #endWith(end: WatchEnd): void {
    if (this.#controller.signal.aborted) return;
    this.#end = end;
    this.#controller.abort(new Error(`the watch was ended: ${end.kind}`));
  }

  readonly #onParentAbort = (): void => {
    this.#controller.abort(this.#parent.reason);
  };
}
