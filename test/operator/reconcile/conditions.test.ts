import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  buildConditions,
  conditionTime,
  isOwnCondition,
  no,
  type Verdict,
  yes,
} from '#operator/reconcile/conditions.ts';
import type { Condition } from '#crds/status-schema.ts';

const GOOD = {
  accepted: yes('Accepted', 'a'),
  resolvedRefs: yes('ResolvedRefs', 'r'),
  programmed: yes('Programmed', 'p'),
  isStalled: false,
};
const FIRST = { previous: [], generation: 3, now: '2026-01-01T00:00:00Z' };

function statusOf(conditions: readonly Condition[]): string[] {
  return conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`);
}

test('a first look at a good object writes the final conditions at once', () => {
  assert.deepEqual(statusOf(buildConditions(GOOD, FIRST)), [
    'Ready=True/Ready',
    'Accepted=True/Accepted',
    'ResolvedRefs=True/ResolvedRefs',
    'Programmed=True/Programmed',
  ]);
});

const UNKNOWN: Verdict = { status: 'Unknown', reason: 'Pending', message: 'u' };
const SUMMARIES: readonly (readonly [string, Partial<typeof GOOD>, string])[] = [
  ['not accepted', { accepted: no('Invalid', 'x'), programmed: UNKNOWN }, 'Ready=False/Invalid'],
  ['unresolved', { resolvedRefs: no('ServerNotFound', 'x') }, 'Ready=False/ServerNotFound'],
  ['not programmed', { programmed: no('TooLarge', 'x') }, 'Ready=False/TooLarge'],
  ['unknown', { programmed: UNKNOWN }, 'Ready=Unknown/Pending'],
  [
    'several',
    { resolvedRefs: no('RefNotPermitted', 'x'), programmed: no('TooLarge', 'x') },
    'Ready=False/RefNotPermitted',
  ],
];
for (const [what, change, ready] of SUMMARIES) {
  test(`Ready of an object that is ${what} is the first thing that is not True`, () => {
    assert.equal(statusOf(buildConditions({ ...GOOD, ...change }, FIRST))[0], ready);
  });
}

test('Reconciling and Stalled are there only while they are True', () => {
  const types = (input: Parameters<typeof buildConditions>[0]): string[] =>
    buildConditions(input, FIRST).map(({ type }) => type);
  assert.ok(!types(GOOD).some((type) => type === 'Stalled' || type === 'Reconciling'));
  const bad = buildConditions({ ...GOOD, isStalled: true, retrying: 'once more' }, FIRST);
  assert.deepEqual(
    bad
      .filter(({ type }) => type === 'Stalled' || type === 'Reconciling')
      .map(({ type, status, reason }) => `${type} ${status} ${reason}`),
    ['Reconciling True ProgressingWithRetry', 'Stalled True Ready'],
  );
});

test('the transition time changes when the status flips, and at no other time (K5)', () => {
  const before = buildConditions(GOOD, FIRST);
  const later = { previous: before, generation: 4, now: '2026-01-02T00:00:00Z' };
  const otherReason = buildConditions({ ...GOOD, programmed: yes('Suspended', 'other') }, later);
  assert.deepEqual(
    new Set(otherReason.map(({ lastTransitionTime }) => lastTransitionTime)),
    new Set([FIRST.now]),
  );
  assert.ok(otherReason.every(({ observedGeneration }) => observedGeneration === 4));
  const flipped = buildConditions({ ...GOOD, programmed: no('TooLarge', 'x') }, later);
  const times = Object.fromEntries(
    flipped.map(({ type, lastTransitionTime }) => [type, lastTransitionTime]),
  );
  assert.deepEqual(times, {
    Ready: later.now,
    Accepted: FIRST.now,
    ResolvedRefs: FIRST.now,
    Programmed: later.now,
  });
});

test('an unchanged object gives the very same list, whenever it is asked', () => {
  const before = buildConditions(GOOD, FIRST);
  const again = buildConditions(GOOD, { ...FIRST, previous: before, now: '2030-01-01T00:00:00Z' });
  assert.deepEqual(again, before);
});

test('times have whole seconds, as the API has them', () => {
  assert.equal(conditionTime(Date.UTC(2026, 10, 30, 1, 2, 3, 999)), '2026-11-30T01:02:03Z');
});

test('conditions of others are theirs', () => {
  const [own] = buildConditions(GOOD, FIRST);
  assert.ok(own !== undefined && isOwnCondition(own));
  assert.ok(!isOwnCondition({ ...own, type: 'example.com/Audited' }));
});
