import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { microTime } from '#operator/kube/micro-time.ts';

test('A MicroTime has exactly six digits, also for whole seconds and fractions of milliseconds', () => {
  const rows: readonly [number, string][] = [
    [0, '1970-01-01T00:00:00.000000Z'],
    [Date.UTC(2026, 0, 2, 3, 4, 5), '2026-01-02T03:04:05.000000Z'],
    [Date.UTC(2026, 0, 2, 3, 4, 5, 250), '2026-01-02T03:04:05.250000Z'],
    [1_000.0625, '1970-01-01T00:00:01.000063Z'],
    [1_999.9999, '1970-01-01T00:00:02.000000Z'],
  ];
  for (const [wallMs, text] of rows) assert.equal(microTime(wallMs), text);
});

test('Every time has the format that the API server takes and keeps its order', () => {
  const time = fc.double({ min: 0, max: Date.UTC(2100, 0, 1), noNaN: true });
  fc.assert(
    fc.property(time, time, (a, b) => {
      assert.match(microTime(a), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
      if (b - a >= 1) assert.ok(microTime(a) < microTime(b));
    }),
  );
});
