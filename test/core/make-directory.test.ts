import assert from 'node:assert/strict';
import { mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { makeDirectory } from '#core/make-directory.ts';

test('a directory is made with those above it, and may be there already', () => {
  const top = mkdtempSync(join(tmpdir(), 'fairlead-make-'));
  const path = join(top, 'a', 'b', 'c');
  makeDirectory(path, 0o700);
  makeDirectory(path);
  for (const made of [path, join(top, 'a')]) assert.equal(statSync(made).mode & 0o777, 0o700);
});

test('what cannot be made is an error and no endless attempt', () => {
  const top = mkdtempSync(join(tmpdir(), 'fairlead-make-'));
  const file = join(top, 'file');
  writeFileSync(file, '');
  assert.throws(() => makeDirectory(file), { code: 'EEXIST' });
  assert.throws(() => makeDirectory(join(file, 'below')), { code: 'ENOTDIR' });
  assert.throws(() => makeDirectory('/proc/no-such-directory/below'), Error);
});
