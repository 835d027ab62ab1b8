import assert from 'node:assert/strict';
import { test } from 'node:test';

import { durationMs, durationNanoseconds } from '#crds/durations.ts';

test('durations count as in Go', () => {
  const rows: readonly (readonly [string, bigint])[] = [
    ['0s', 0n],
    ['500ms', 500_000_000n],
    ['30s', 30_000_000_000n],
    ['1m30s', 90_000_000_000n],
    ['1.5h', 5_400_000_000_000n],
    ['0.1s', 100_000_000n],
    ['1.1s', 1_100_000_000n],
    ['0.0000000001s', 0n],
    ['30s1m', 90_000_000_000n],
    ['007s', 7_000_000_000n],
  ];
  for (const [text, expected] of rows) assert.equal(durationNanoseconds(text), expected, text);
});

test('other forms are no durations', () => {
  for (const text of [
    '',
    '30',
    '-1s',
    '+1s',
    '1.s',
    '.5s',
    '1d',
    '1us',
    '1 s',
    '1S',
    'PT1S',
    '1s\n',
  ]) {
    assert.equal(durationNanoseconds(text), undefined, JSON.stringify(text));
  }
});

test('milliseconds are whole and keep the order', () => {
  assert.equal(durationMs('1.1s'), 1100);
  assert.equal(durationMs('0.6ms'), 1);
  assert.equal(durationMs('24h'), 86_400_000);
  assert.throws(() => durationMs('soon'), TypeError);
});
