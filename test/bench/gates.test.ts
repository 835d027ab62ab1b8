import assert from 'node:assert/strict';
import { test } from 'node:test';

import { judgeGates } from './gates.ts';
import { Results } from './results.ts';

function verdicts(results: Results): string[] {
  return judgeGates(results).map(({ verdict }) => verdict);
}

/** Medians: 50 us of CPU for the pass-through, 700 for the SDK v1 proxy, starts of 100 ms. */
function measuredPeers(): Results {
  const results = new Results();
  for (const us of [49, 50, 90]) results.add('pass-through', 'cpu32', us);
  results.add('sdk-v1-proxy', 'cpu32', 700);
  results.add('pass-through', 'startMs', 100);
  return results;
}

test('the gates hold at their limits, judged by medians', () => {
  const results = measuredPeers();
  for (const us of [80, 60, 300]) results.add('sidecar', 'cpu32', us);
  results.add('sidecar', 'idleMib', 100);
  results.add('sidecar', 'startMs', 300);
  results.add('sidecar', 'startDeadMs', 300);
  assert.deepEqual(verdicts(results), ['pass', 'pass', 'pass', 'pass', 'pass']);
});

test('each gate fails on its own figure', () => {
  const results = measuredPeers();
  results.add('sidecar', 'cpu32', 120);
  results.add('sidecar', 'idleMib', 101);
  results.add('sidecar', 'startMs', 301);
  results.add('sidecar', 'startDeadMs', 5000);
  assert.deepEqual(verdicts(results), ['fail', 'fail', 'fail', 'fail', 'fail']);
});

test('a gate whose figure was not measured is neither passed nor failed', () => {
  const results = new Results();
  results.add('sidecar', 'cpu32', 40);
  results.add('sidecar', 'idleMib', 60);
  assert.deepEqual(verdicts(results), ['unknown', 'unknown', 'pass', 'unknown', 'unknown']);
});
