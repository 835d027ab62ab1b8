// What an informer does when a watch or a list has ended: pure decisions, with client-go's numbers.
// The rule behind them: a gap whose size is unknown is closed by a full list, never guessed away.

import { KubeError } from '#operator/kube/kube-error.ts';
import { MALFORMED_WATCH } from '#operator/kube/watch-stream.ts';

export type RelistReason = 'first' | 'expired' | 'empty-watches' | 'malformed' | 'safety';

/** How one watch ended. */
export type WatchEnd =
  | { readonly kind: 'closed'; readonly eventCount: number; readonly durationMs: number }
  | { readonly kind: 'stalled' }
  | { readonly kind: 'safety-relist-due' }
  | { readonly kind: 'failed'; readonly error: unknown; readonly eventCount: number };

export interface WatchHistory {
  /** Watches in a row that ended well without a single frame. */
  readonly emptyWatches: number;
  /** Watches in a row that ended on bytes that are no frame. */
  readonly malformedWatches: number;
  /** Watches in a row that the server refused as expired, although a fresh list came before each. */
  readonly expiredWatches: number;
}

export interface NextStep {
  /** Absent: watch again from the last resourceVersion. */
  readonly relist?: RelistReason;
  /** `backoff`: the growing wait; a number: what the server asked for, at least. */
  readonly wait: 'none' | 'backoff' | number;
  readonly history: WatchHistory;
}

export const FRESH_HISTORY: WatchHistory = {
  emptyWatches: 0,
  malformedWatches: 0,
  expiredWatches: 0,
};
const MAX_IN_A_ROW = 3;
/** A watch that ends well within this time would be a busy loop without a wait. */
const SHORT_WATCH_MS = 5_000;

export function decideNextStep(end: WatchEnd, history: WatchHistory): NextStep {
  switch (end.kind) {
    case 'closed':
      return afterClosed(end, history);
    case 'stalled':
      return { wait: 'none', history };
    case 'safety-relist-due':
      return { relist: 'safety', wait: 'none', history: FRESH_HISTORY };
    case 'failed':
      return afterFailure(end.error, end.eventCount > 0 ? FRESH_HISTORY : history);
  }
  return end satisfies never;
}

function afterClosed(
  end: { eventCount: number; durationMs: number },
  history: WatchHistory,
): NextStep {
  const wait = end.durationMs < SHORT_WATCH_MS ? 'backoff' : 'none';
  if (end.eventCount > 0) return { wait, history: FRESH_HISTORY };
  const emptyWatches = history.emptyWatches + 1;
  // Some servers answer 200 and nothing at a version that they no longer have.
  if (emptyWatches >= MAX_IN_A_ROW)
    return { relist: 'empty-watches', wait, history: FRESH_HISTORY };
  return { wait, history: { ...history, emptyWatches } };
}

function afterFailure(error: unknown, history: WatchHistory): NextStep {
  if (!(error instanceof KubeError)) return { wait: 'backoff', history };
  if (error.kind === 'expired') return afterExpiry(history);
  if (error.reason === MALFORMED_WATCH) {
    const malformedWatches = history.malformedWatches + 1;
    // The same bytes would come again from the same version: step over them with a list.
    if (malformedWatches >= MAX_IN_A_ROW)
      return { relist: 'malformed', wait: 'backoff', history: FRESH_HISTORY };
    return { wait: 'backoff', history: { ...history, malformedWatches } };
  }
  return { wait: error.retryAfterMs ?? 'backoff', history };
}

/** The first list may go out at once; a server that refuses its own versions must not be hammered. */
function afterExpiry(history: WatchHistory): NextStep {
  const expiredWatches = history.expiredWatches + 1;
  const wait = expiredWatches > 1 ? 'backoff' : 'none';
  return { relist: 'expired', wait, history: { ...FRESH_HISTORY, expiredWatches } };
}

/** Server-side end of a watch: random, so that watches do not all end together. */
export function watchTimeoutSeconds(random: () => number): number {
  return 300 + Math.floor(random() * 301);
}

/** How long a watch may be silent before its connection counts as dead. */
export function silenceLimitMs(timeoutSeconds: number, hasSeenBookmarks: boolean): number {
  return hasSeenBookmarks ? 150_000 : timeoutSeconds * 1000 + 5_000;
}

export function safetyRelistDelayMs(random: () => number): number {
  return (45 + random() * 30) * 60_000;
}
