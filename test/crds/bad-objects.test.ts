// The one table of bad objects against offline validation: refused, and at the same path as by the
// API server.

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { validateObject } from '#crds/validate-object.ts';
import { BAD_OBJECTS, badObject } from '#test/support/bad-objects.ts';
import { GOOD_BINDING, GOOD_OAUTH_SERVER, GOOD_SERVER } from '#test/support/good-objects.ts';

const STRICT = { development: false, unknownFields: 'refuse' } as const;

suite('offline validation of the bad objects', () => {
  for (const row of BAD_OBJECTS) {
    test(`refuses ${row.title} (${row.proves})`, () => {
      const verdict = validateObject(badObject(row), STRICT);
      assert.equal(verdict.kind, 'invalid');
      assert.deepEqual(
        [...new Set(verdict.kind === 'invalid' ? verdict.issues.map(({ path }) => path) : [])],
        [row.path],
      );
    });
  }
});

test('offline validation accepts the good objects that the table starts from (R7)', () => {
  for (const object of [GOOD_SERVER, GOOD_OAUTH_SERVER, GOOD_BINDING]) {
    const verdict = validateObject(object, STRICT);
    assert.deepEqual(verdict.kind === 'invalid' ? verdict.issues : [], []);
  }
});

test('the table has no two rows of one title', () => {
  const titles = BAD_OBJECTS.map(({ title }) => title);
  assert.deepEqual(
    titles.filter((title, index) => titles.indexOf(title) !== index),
    [],
  );
});
