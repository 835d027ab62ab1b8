// When a program for people or a cluster has to end: in order at the first signal, at once at a later
// one. Ctrl-C under npm, timeout and their like arrives twice, from the terminal and from them: within
// a moment that counts as one.

import type { Clock } from './clock.ts';

const SAME_SIGNAL_MS = 500;

export interface StopOptions {
  readonly clock: Clock;
  /** Of an end at once. */
  readonly exitCode: number;
  /** Another reason to stop in order; a signal after it counts as a later one. */
  readonly alsoAt?: AbortSignal;
}

/** Aborts at the first SIGINT or SIGTERM; a later one ends the process. */
export function stopSignal({ clock, exitCode, alsoAt }: StopOptions): AbortSignal {
  const stop = new AbortController();
  let stoppedAtMs = 0;
  const begin = (): void => {
    if (stop.signal.aborted) return;
    stoppedAtMs = clock.monotonicMs();
    stop.abort(new Error('asked to stop'));
  };
  const onSignal = (): void => {
    if (!stop.signal.aborted) begin();
    else if (clock.monotonicMs() - stoppedAtMs >= SAME_SIGNAL_MS) process.exit(exitCode);
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  alsoAt?.addEventListener('abort', begin, { once: true });
  return stop.signal;
}
