import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseBenchOptions, TARGET_NAMES } from './bench-options.ts';

test('without a word the suite is calls, with all targets', () => {
  const options = { suite: 'calls', isQuick: false, isJson: false, targets: TARGET_NAMES };
  assert.deepEqual(parseBenchOptions([]), { kind: 'run', options });
});

test('--only may be repeated and keeps the order of the table', () => {
  const parsed = parseBenchOptions([
    'calls',
    '--quick',
    '--json',
    '--only',
    'sidecar',
    '--only',
    'nginx',
  ]);
  const options = { suite: 'calls', isQuick: true, isJson: true, targets: ['nginx', 'sidecar'] };
  assert.deepEqual(parsed, { kind: 'run', options });
});

for (const argv of [
  ['frobnicate'],
  ['calls', 'calls'],
  ['--only', 'apache'],
  ['--only'],
  ['--loud'],
]) {
  test(`${argv.join(' ')} is wrong usage`, () => {
    assert.equal(parseBenchOptions(argv).kind, 'usage');
  });
}
