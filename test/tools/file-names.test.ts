import assert from 'node:assert/strict';
import { test } from 'node:test';

import { findNameFaults } from '../../tools/file-names.ts';

function faultsOf(path: string, text = '// What it is for.\n'): number {
  return findNameFaults(new Map([[path, text]])).length;
}

test('drawers, barrels and other spellings are refused', () => {
  for (const path of [
    'core/utils/a.ts',
    'core/common/a.ts',
    'sidecar/index.ts',
    'sidecar/pool-manager.ts',
    'operator/helper.ts',
    'operator/url-utils.ts',
    'operator/workQueue.ts',
    'operator/Informer.ts',
    'operator/work_queue.ts',
  ]) {
    assert.equal(faultsOf(path), 1, path);
  }
});

test('a module of the product opens with what it is for', () => {
  assert.equal(faultsOf('core/a.ts', 'export const a = 1;\n'), 1);
  assert.equal(faultsOf('bin/a.ts', '#!/usr/bin/env node\n// What it is for.\n'), 0);
  assert.equal(faultsOf('test/a.test.ts', 'export const a = 1;\n'), 0);
});
