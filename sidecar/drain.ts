// The orderly end (design, rollouts). Not ready at once; then a plain process goes on accepting
// until it has been idle or its time is up, since its clients have nobody else to call; a native
// sidecar, whose application has already gone, accepts nothing more. What cannot be waited for
// is answered; sockets close; no socket that never ends can hold up the end.

import type { Clock } from '#core/clock.ts';

import type { AgentApi } from '#sidecar/agent-api/agent-api.ts';

/** A plain process counts as idle after this long without a request: longer than clients' polls of /readyz. */
const IDLE_MS = 1_000;
const STEP_MS = 20;
/** For telling remote servers that their sessions end; best effort. */
export const CLOSE_MS = 1_000;
/** For last answers to reach their sockets. */
const FLUSH_MS = 500;

export interface DrainOptions {
  readonly clock: Clock;
  readonly isNativeSidecar: boolean;
  readonly timeoutMs: number;
  readonly api: Pick<AgentApi, 'inFlight' | 'idleMs' | 'refuseNew' | 'interruptAll'>;
  /** No new connections from now on. */
  readonly stopAccepting: () => void;
  /** Sessions and upstream connections; may hang. */
  readonly closeUpstream: () => Promise<unknown>;
  /** Every socket and timer that is left. */
  readonly closeAll: () => Promise<unknown>;
}

export interface DrainReport {
  readonly durationMs: number;
  /** Requests that got a last answer because their time was up. */
  readonly interrupted: number;
}

export async function drain(options: DrainOptions): Promise<DrainReport> {
  const { clock, api, isNativeSidecar } = options;
  const startedMs = clock.monotonicMs();
  const deadlineMs = startedMs + waitMs(options.timeoutMs);
  const isTimeUp = (): boolean => clock.monotonicMs() >= deadlineMs;
  const isIdle = (): boolean => clock.monotonicMs() - startedMs >= IDLE_MS && api.idleMs >= IDLE_MS;
  if (isNativeSidecar) api.refuseNew();
  else await waitUntil(clock, () => isTimeUp() || isIdle());
  if (!isNativeSidecar) options.stopAccepting();
  await waitUntil(clock, () => isTimeUp() || api.inFlight === 0);
  options.stopAccepting();
  // Nothing may begin between the last answers and the end.
  api.refuseNew();
  const interrupted = api.inFlight;
  api.interruptAll();
  await atMost(CLOSE_MS, clock, options.closeUpstream());
  const flushedByMs = clock.monotonicMs() + FLUSH_MS;
  await waitUntil(clock, () => api.inFlight === 0 || clock.monotonicMs() >= flushedByMs);
  await options.closeAll();
  return { durationMs: Math.round(clock.monotonicMs() - startedMs), interrupted };
}

/** The closing steps need a part of the time, so that the process ends before it is killed. */
function waitMs(timeoutMs: number): number {
  return Math.max(0, timeoutMs - Math.min(CLOSE_MS + 2 * FLUSH_MS, timeoutMs / 2));
}

async function waitUntil(clock: Clock, isReached: () => boolean): Promise<void> {
  while (!isReached()) await clock.sleep(STEP_MS);
}

/** Best effort: neither a hang nor a failure of the work holds anything up. */
export async function atMost(ms: number, clock: Clock, work: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  const isDone = work.then(
    () => {},
    () => {},
  );
  await Promise.race([isDone, clock.sleep(ms, timer.signal).catch(() => {})]);
  timer.abort();
}
