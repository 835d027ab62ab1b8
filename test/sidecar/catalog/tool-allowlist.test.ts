import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { compileAllowlist, compileToolPattern } from '#sidecar/catalog/tool-allowlist.ts';

test('a_pattern_matches_exactly_or_by_its_stars', () => {
  const rows: [string, string, boolean][] = [
    ['echo', 'echo', true],
    ['echo', 'echo2', false],
    ['echo', 'Echo', false],
    ['get_*', 'get_user', true],
    ['get_*', 'get_', true],
    ['get_*', 'xget_user', false],
    ['*_read', 'file_read', true],
    ['*', '', true],
    ['a*b*c', 'abc', true],
    ['a*b*c', 'aXbYc', true],
    ['a*b*c', 'acb', false],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['a.b', 'axb', false],
    ['a*bc*c', 'abc', false],
  ];
  for (const [pattern, name, expected] of rows) {
    assert.equal(compileToolPattern(pattern)(name), expected, `${pattern} on ${name}`);
  }
});

test('a_pattern_agrees_with_the_regular_expression_it_stands_for', () => {
  const text = fc.stringMatching(/^[ab.]{0,8}$/);
  fc.assert(
    fc.property(fc.stringMatching(/^[ab.*]{1,6}$/), text, (pattern, name) => {
      const expected = new RegExp(
        `^${pattern.replaceAll('.', String.raw`\.`).replaceAll('*', '.*')}$`,
      ).test(name);
      assert.equal(compileToolPattern(pattern)(name), expected);
    }),
  );
});

test('every_list_must_allow_a_tool_and_no_list_allows_nothing', () => {
  const isAllowed = compileAllowlist([
    ['get_*', 'list'],
    ['get_user', 'drop'],
  ]);
  assert.deepEqual(['get_user', 'get_repo', 'list', 'drop'].filter(isAllowed), ['get_user']);
  assert.equal(compileAllowlist([])('anything'), false);
  assert.equal(compileAllowlist([[]])('anything'), false);
});
