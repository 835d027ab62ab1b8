import assert from 'node:assert/strict';
import { test } from 'node:test';

import packageJson from '../../package.json' with { type: 'json' };
import { nodeFault } from '#bin/node-version.ts';

for (const version of ['24.0.0', '24.22.3', '26.1.0', '100.0.0']) {
  test(`Node ${version} will do`, () => assert.equal(nodeFault(version), undefined));
}

for (const version of ['20.20.2', '22.19.0', '23.11.1']) {
  test(`Node ${version} is too old, and is told so by name`, () =>
    assert.equal(
      nodeFault(version),
      `fairlead needs Node 24 or newer, and this is Node ${version}.`,
    ));
}

test('the package says the same of the oldest Node', () => {
  assert.equal(packageJson.engines.node, '>=24');
});
