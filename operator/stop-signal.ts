// When a program for people or a cluster has to end: in order at the first signal, at once at a second
// one. Ctrl-C under npm, timeout and their like arrives twice, from the terminal and from them: within
// a moment that counts as one.

import type { Clock } from '#core/clock.ts';

const SAME_SIGNAL_MS = 500;

/** Aborts at the first SIGINT or SIGTERM; a later one ends the process with `exitCode`. */
export function stopSignal(clock: Clock, exitCode: number): AbortSignal {
  const stop = new AbortController();
  let firstAtMs = 0;
  const onSignal = (): void => {
    if (!stop.signal.aborted) {
      firstAtMs = clock.monotonicMs();
      stop.abort(new Error('asked to stop'));
    } else if (clock.monotonicMs() - firstAtMs >= SAME_SIGNAL_MS) process.exit(exitCode);
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  return stop.signal;
}
