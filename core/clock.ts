// The one door to time. Everything that waits or measures takes a Clock, so that tests can drive it.
// Wall time is for people (logs, Lease timestamps); durations and deadlines use monotonic time,
// which neither NTP nor a suspended wall clock can bend.

export interface TimerHandle {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds since the Unix epoch. Never used for durations. */
  nowMs(): number;
  /** Monotonic milliseconds with sub-millisecond fraction; goes on while the process is stopped. */
  monotonicMs(): number;
  /** Runs `fire` once after `ms`. The timer does not keep the process alive when `unref` is set. */
  setTimer(ms: number, fire: () => void, options?: { readonly unref?: boolean }): TimerHandle;
  /** Resolves after `ms`; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer(ms, fire, options) {
    const timer = setTimeout(fire, ms);
    if (options?.unref === true) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  sleep(ms, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      }, ms);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  },
};
