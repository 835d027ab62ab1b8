import assert from 'node:assert/strict';
import { test } from 'node:test';

import { LiveSet } from '#core/live-set.ts';

test('a live set holds each item once and lets any of them go, in any order', () => {
  for (const order of [
    [0, 1, 2, 3],
    [3, 2, 1, 0],
    [1, 3, 0, 2],
  ]) {
    const set = new LiveSet<{ slot: number }>();
    const items = Array.from({ length: 4 }, () => ({ slot: -1 }));
    for (const item of [...items, ...items]) set.add(item);
    assert.equal(set.size, 4);
    const left = new Set(items);
    for (const index of order) {
      const item = items[index];
      assert.ok(item);
      set.delete(item);
      set.delete(item);
      left.delete(item);
      assert.deepEqual(new Set(set.values()), left);
      assert.equal(item.slot, -1);
    }
  }
});

test('items may leave while the set is walked', () => {
  const set = new LiveSet<{ slot: number }>();
  const items = Array.from({ length: 5 }, () => ({ slot: -1 }));
  for (const item of items) set.add(item);
  const seen = [];
  for (const item of set.values()) {
    seen.push(item);
    set.delete(item);
  }
  assert.deepEqual(seen, items);
  assert.equal(set.size, 0);
});
