// The sources as they are, held to the directions, doors and names that the tools define.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import packageJson from '../package.json' with { type: 'json' };
import { findNameFaults } from '../tools/file-names.ts';
import { aliasedFolders, findDirectionFaults } from '../tools/import-directions.ts';
import { findDoorFaults } from '../tools/one-door.ts';
import { PROJECT_ROOT, readSourceTree } from '../tools/source-tree.ts';
import type { Fault } from '../tools/syntax-tree.ts';

const tree = await readSourceTree(PROJECT_ROOT);

function show(faults: readonly Fault[]): string[] {
  return faults.map(({ path, line, message }) => `${path}:${line} ${message}`);
}

test('the tree that is judged holds the programs', () => {
  for (const folder of ['bin/', 'core/', 'crds/', 'operator/', 'sidecar/']) {
    assert.ok(
      [...tree.keys()].some((path) => path.startsWith(folder)),
      folder,
    );
  }
});

test('crds import core, operator imports crds and core, sidecar imports core, core imports nothing', () => {
  assert.deepEqual(show(findDirectionFaults(tree, aliasedFolders(packageJson))), []);
});

test('requests, environment and time are reached through their one door', () => {
  assert.deepEqual(show(findDoorFaults(tree)), []);
});

test('files are named after what they hold and say what they are for', () => {
  assert.deepEqual(show(findNameFaults(tree)), []);
});
