import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readServerInfo } from '#sidecar/upstream/read-server-info.ts';

test('what a server says about itself is kept as it is, unknown members too', () => {
  const info = { name: 'n', version: '1', vendor: { deep: [1] } };
  assert.equal(readServerInfo(info), info);
});

for (const [what, value] of [
  ['no object', 'fairy'],
  ['a list', []],
  ['null', null],
  ['too long', { name: 'x'.repeat(20_000) }],
  ['nested without end', JSON.parse(`${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`)],
] as const)
  test(`what is ${what} is not kept`, () => assert.equal(readServerInfo(value), undefined));
