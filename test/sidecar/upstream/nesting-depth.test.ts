import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isNestedDeeper, MAX_NESTING } from '#sidecar/upstream/nesting-depth.ts';

function nested(levels: number, open = '{"a":', close = '}'): unknown {
  return JSON.parse(`${open.repeat(levels)}1${close.repeat(levels)}`);
}

test('a value may be nested as deep as the limit, and no deeper', () => {
  assert.equal(isNestedDeeper(nested(MAX_NESTING)), false);
  assert.equal(isNestedDeeper(nested(MAX_NESTING + 1)), true);
  assert.equal(isNestedDeeper([1, nested(MAX_NESTING, '[', ']')]), true);
  for (const plain of [1, 'text', null, undefined, {}, []])
    assert.equal(isNestedDeeper(plain, 1), false);
});

test('a value without end is judged like any other', () => {
  assert.equal(isNestedDeeper(nested(1_000_000, '[', ']')), true);
});
