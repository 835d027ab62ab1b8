import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseArguments, renderSeconds, renderTotals, selectFiles } from './run-plan.ts';

test('path parts and flags are told apart, with and without the double dash', () => {
  assert.deepEqual(parseArguments(['unit', 'egress', '--test-name-pattern=x']), {
    layer: 'unit',
    pathParts: ['egress'],
    nodeFlags: ['--test-name-pattern=x'],
  });
  assert.deepEqual(parseArguments(['all', 'a', '--', '--test-only', 'b']), {
    layer: 'all',
    pathParts: ['a'],
    nodeFlags: ['--test-only', 'b'],
  });
  assert.equal(parseArguments([]), undefined);
  assert.equal(parseArguments(['everything']), undefined);
});

test('the folder decides the layer of a file', () => {
  const files = [
    'test/node/a.test.ts',
    'test/core/b.test.ts',
    'test/apiserver/c.test.ts',
    'test/proxies/d.test.ts',
    'test/a.test.ts',
  ];
  assert.deepEqual(selectFiles(files, 'unit', []), ['test/a.test.ts', 'test/core/b.test.ts']);
  assert.deepEqual(selectFiles(files, 'apiserver', []), ['test/apiserver/c.test.ts']);
  assert.deepEqual(selectFiles(files, 'proxies', []), ['test/proxies/d.test.ts']);
  assert.deepEqual(selectFiles(files, 'node', ['core']), []);
  assert.deepEqual(selectFiles(files, 'unit', ['core', 'node']), ['test/core/b.test.ts']);
});

test('the last line names skipped tests only when there are any', () => {
  assert.equal(renderTotals({ passed: 3, failed: 1, skipped: 0 }), '3 passed, 1 failed');
  assert.equal(renderTotals({ passed: 3, failed: 0, skipped: 2 }), '3 passed, 0 failed, 2 skipped');
});

test('durations are shown in seconds, long ones in minutes', () => {
  assert.equal(renderSeconds(1234), '1.2 s');
  assert.equal(renderSeconds(150_000), '2 min 30 s');
});
