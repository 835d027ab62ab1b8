// Conditions as kstatus and Gateway API read them, made from verdicts. A transition time changes
// only when the status flips, so that an unchanged world gives an unchanged list. Pure.

import type { Condition } from '#crds/status-schema.ts';

export type ConditionStatus = 'True' | 'False' | 'Unknown';

/** What the operator found out about one question. */
export interface Verdict {
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

export interface ConditionInput {
  readonly accepted: Verdict;
  readonly resolvedRefs: Verdict;
  readonly programmed: Verdict;
  /** Reasons with which a human has to act: the object is Stalled. */
  readonly isStalled: boolean;
  /** What failed and is being tried again. */
  readonly retrying?: string;
}

export interface ConditionContext {
  readonly previous: readonly Condition[];
  readonly generation: number;
  /** RFC 3339, seconds. */
  readonly now: string;
}

export function yes(reason: string, message: string): Verdict {
  return { status: 'True', reason, message };
}

export function no(reason: string, message: string): Verdict {
  return { status: 'False', reason, message };
}

/** Ready first, then the abnormal ones, then what Ready sums up. */
export function buildConditions(input: ConditionInput, context: ConditionContext): Condition[] {
  const { accepted, resolvedRefs, programmed, isStalled, retrying } = input;
  const ready = summarize([accepted, resolvedRefs, programmed]);
  const wanted: [string, Verdict][] = [['Ready', ready]];
  if (retrying !== undefined) wanted.push(['Reconciling', yes('ProgressingWithRetry', retrying)]);
  if (isStalled) wanted.push(['Stalled', { ...ready, status: 'True' }]);
  wanted.push(['Accepted', accepted], ['ResolvedRefs', resolvedRefs], ['Programmed', programmed]);
  return wanted.map(([type, verdict]) => condition(type, verdict, context));
}

/** The types that we own; whatever else is in the list belongs to somebody else. */
const OWN_TYPES = new Set([
  'Ready',
  'Reconciling',
  'Stalled',
  'Accepted',
  'ResolvedRefs',
  'Programmed',
]);

export function isOwnCondition({ type }: Condition): boolean {
  return OWN_TYPES.has(type);
}

/** The first that is not True says why. */
function summarize(verdicts: readonly Verdict[]): Verdict {
  return (
    verdicts.find(({ status }) => status !== 'True') ?? yes('Ready', 'Everything is in order.')
  );
}

function condition(
  type: string,
  { status, reason, message }: Verdict,
  { previous, generation, now }: ConditionContext,
): Condition {
  const before = previous.find((known) => known.type === type);
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now;
  return { type, status, observedGeneration: generation, lastTransitionTime, reason, message };
}

/** `2026-12-01T01:02:03Z`: conditions have second precision. */
export function conditionTime(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}
