import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { exposedNames } from '#sidecar/catalog/tool-name.ts';

test('short_valid_pairs_are_joined_by_two_underscores (R69)', () => {
  const pairs = [
    { alias: 'github', tool: 'create_issue' },
    { alias: 'git-hub', tool: 'list__all' },
  ];
  assert.deepEqual(exposedNames(pairs), ['github__create_issue', 'git-hub__list__all']);
});

test('names_over_64_characters_keep_a_readable_part_and_a_hash_of_the_pair (R69)', () => {
  const tool = 'a_very_long_tool_name_that_goes_on_and_on_until_it_does_not_fit_any_more';
  const [first, second] = exposedNames([
    { alias: 'up', tool: `${tool}_1` },
    { alias: 'up', tool: `${tool}_2` },
  ]);
  assert.match(first ?? '', /^up__a_very_long_tool_name_that_goes.*_[0-9a-f]{8}$/);
  assert.equal(first?.length, 64);
  assert.notEqual(first, second);
});

test('characters_that_model_APIs_refuse_are_replaced', () => {
  const [dotted, german] = exposedNames([
    { alias: 'up', tool: 'files.read/all' },
    { alias: 'up', tool: 'tööl' },
  ]);
  assert.match(dotted ?? '', /^up__files_read_all_[0-9a-f]{8}$/);
  assert.match(german ?? '', /^up__t_l_[0-9a-f]{8}$/);
});

test('a_hashed_name_gives_way_to_a_tool_that_really_has_that_name', () => {
  const [hashed] = exposedNames([{ alias: 'up', tool: 'a.b' }]);
  const rival = (hashed ?? '').slice('up__'.length);
  const names = exposedNames([
    { alias: 'up', tool: 'a.b' },
    { alias: 'up', tool: rival },
  ]);
  assert.equal(names[1], hashed);
  assert.notEqual(names[0], names[1]);
});

test('names_are_unique_valid_and_independent_of_order', () => {
  const alias = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$/);
  const pair = fc.record({
    alias,
    tool: fc.oneof(
      fc.string({ minLength: 1, maxLength: 128 }),
      fc.stringMatching(/^[a-z_]{1,90}$/),
    ),
  });
  const pairs = fc.uniqueArray(pair, {
    selector: (value) => JSON.stringify([value.alias, value.tool]),
    maxLength: 30,
  });
  fc.assert(
    fc.property(pairs, (list) => {
      const names = exposedNames(list);
      assert.equal(new Set(names).size, list.length);
      for (const name of names) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
      assert.deepEqual(exposedNames(list.toReversed()).toReversed(), names);
    }),
  );
});
