// The events of node:test that the reporters read, and the little that both compute from them.

import type { TestEvent } from 'node:test/reporters';

import type { Totals } from './run-plan.ts';

export type { TestEvent };

type SummaryEvent = Extract<TestEvent, { type: 'test:summary' }>;

export function totalsOf({ counts }: SummaryEvent['data']): Totals {
  const skipped = counts.skipped + counts.todo;
  // The rest failed, was cancelled, or never ended.
  return { passed: counts.passed, failed: counts.tests - counts.passed - skipped, skipped };
}
