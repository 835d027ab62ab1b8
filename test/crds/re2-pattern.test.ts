import assert from 'node:assert/strict';
import { test } from 'node:test';

import { re2Fault } from '#crds/re2-pattern.ts';

test('patterns that both engines read alike pass', () => {
  for (const pattern of [
    '^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$',
    '^([0-9]+(\\.[0-9]+)?(ms|s))+$',
    '^(?:a|b)*$',
    '^\\[::1\\]$',
    '^[!#-\\[\\]-~]+$',
  ]) {
    assert.equal(re2Fault(pattern), undefined, pattern);
  }
});

test('what RE2 does not know, or reads differently, is named', () => {
  const rows: readonly (readonly [string, RegExp])[] = [
    ['^(?=a)b$', /look-around/],
    ['^(?!a)b$', /look-around/],
    ['^(?<=a)b$', /look-around/],
    ['^(?<name>a)$', /look-around or a named group/],
    ['^(a)\\1$', /escape "\\1"/],
    ['^\\u0041$', /escape "\\u"/],
    ['^\\p{L}$', /escape "\\p"/],
    ['^\\sa$', /escape "\\s"/],
    ['^a{1,2048}$', /repeats more than 1000/],
    ['^a{1001}$', /repeats more than 1000/],
    ['^[[:alpha:]]$', /POSIX class/],
    ['^ä$', /outside ASCII/],
    ['a', /not anchored/],
    ['^a', /not anchored/],
  ];
  for (const [pattern, expected] of rows) assert.match(re2Fault(pattern) ?? '', expected, pattern);
});
