import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KubeError } from '#operator/kube/kube-error.ts';
import type { KubeErrorKind } from '#operator/kube/kube-error.ts';
import { Backoff } from '#operator/watch/backoff.ts';
import {
  FRESH_HISTORY,
  decideNextStep,
  safetyRelistDelayMs,
  silenceLimitMs,
  watchTimeoutSeconds,
} from '#operator/watch/watch-policy.ts';
import type { NextStep, WatchEnd } from '#operator/watch/watch-policy.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

function failed(kind: KubeErrorKind, retryAfterMs?: number): WatchEnd {
  const details = { message: kind, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  return { kind: 'failed', error: new KubeError(kind, details), eventCount: 0 };
}

const rows: readonly [title: string, end: WatchEnd, step: Pick<NextStep, 'relist' | 'wait'>][] = [
  [
    'A long watch with events is opened again at once',
    { kind: 'closed', eventCount: 3, durationMs: 300_000 },
    { wait: 'none' },
  ],
  [
    'A short watch waits, also with events',
    { kind: 'closed', eventCount: 3, durationMs: 10 },
    { wait: 'backoff' },
  ],
  [
    'A long watch without events is opened again at once',
    { kind: 'closed', eventCount: 0, durationMs: 300_000 },
    { wait: 'none' },
  ],
  ['A stalled watch is opened again at once', { kind: 'stalled' }, { wait: 'none' }],
  [
    'A due safety relist is made at once',
    { kind: 'safety-relist-due' },
    { relist: 'safety', wait: 'none' },
  ],
  ['An expired version needs a list', failed('expired'), { relist: 'expired', wait: 'none' }],
  [
    'A server that is busy says how long to wait',
    failed('too-many-requests', 9_000),
    { wait: 9_000 },
  ],
  ['A refusal waits', failed('forbidden'), { wait: 'backoff' }],
  ['An unreachable server waits', failed('unreachable'), { wait: 'backoff' }],
  [
    'A bug of our own waits',
    { kind: 'failed', error: new TypeError('bug'), eventCount: 0 },
    { wait: 'backoff' },
  ],
];
for (const [title, end, { relist, wait }] of rows) {
  test(title, () => {
    const step = decideNextStep(end, FRESH_HISTORY);
    assert.equal(step.relist, relist);
    assert.equal(step.wait, wait);
  });
}

test('A frame in between makes earlier empty or refused watches count no longer', () => {
  const history = { emptyWatches: 2, malformedWatches: 2, expiredWatches: 5 };
  const good = decideNextStep({ kind: 'closed', eventCount: 1, durationMs: 300_000 }, history);
  assert.deepEqual(good.history, FRESH_HISTORY);
  const gone = new KubeError('expired', { message: 'gone' });
  assert.equal(
    decideNextStep({ kind: 'failed', error: gone, eventCount: 1 }, history).wait,
    'none',
  );
  assert.equal(
    decideNextStep({ kind: 'failed', error: gone, eventCount: 0 }, history).wait,
    'backoff',
  );
});

test('Random times stay within their bounds', () => {
  assert.deepEqual(
    [watchTimeoutSeconds(() => 0), watchTimeoutSeconds(() => 0.999_999)],
    [300, 600],
  );
  assert.deepEqual(
    [safetyRelistDelayMs(() => 0), safetyRelistDelayMs(() => 1)],
    [45 * 60_000, 75 * 60_000],
  );
  assert.deepEqual([silenceLimitMs(400, false), silenceLimitMs(400, true)], [405_000, 150_000]);
});

test('Waits grow from 0.8 to 30 seconds with jitter, and are forgotten after two healthy minutes', () => {
  const clock = new FakeClock();
  const backoff = new Backoff({ clock, random: () => 0 });
  assert.deepEqual(
    Array.from({ length: 8 }, () => backoff.nextMs()),
    [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000],
  );
  clock.advance(149_999);
  assert.equal(backoff.nextMs(), 30_000);
  clock.advance(150_000);
  assert.equal(backoff.nextMs(), 800);
  assert.equal(new Backoff({ clock, random: () => 0.5 }).nextMs(), 1_200);
});
