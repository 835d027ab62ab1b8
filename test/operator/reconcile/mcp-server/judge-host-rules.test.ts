import assert from 'node:assert/strict';
import { test } from 'node:test';

import { validateObject } from '#crds/validate-object.ts';
import { isPublicSuffixWildcard } from '#operator/reconcile/mcp-server/judge-host-rules.ts';
import { judgeServer } from '#operator/reconcile/mcp-server/judge-server.ts';
import { editValue } from '#test/support/edit-value.ts';
import { GOOD_SERVER } from '#test/support/good-objects.ts';

const ROWS: readonly (readonly [string, boolean])[] = [
  ['*.co.uk', true],
  ['*.github.io', true],
  ['*.foo.ck', true],
  ['*.azurewebsites.net', true],
  ['*.example.co.uk', false],
  ['*.tenant.github.io', false],
  ['*.example.com', false],
  ['*.tenant.example.net', false],
  ['*.corp.example', false],
  ['github.io', false],
  ['mcp.example.co.uk', false],
];

for (const [rule, isWide] of ROWS) {
  test(`${rule} is ${isWide ? 'a' : 'no'} wildcard over a public suffix (R12)`, () => {
    assert.equal(isPublicSuffixWildcard(rule), isWide);
  });
}

test('a server that lists one is not accepted, and the field is named (R12)', () => {
  const verdict = validateObject(
    editValue(GOOD_SERVER, { 'spec.egress.allowedHosts': ['mcp.example.com', '*.co.uk'] }),
    { development: false, unknownFields: 'refuse' },
  );
  assert.equal(verdict.kind, 'ok');
  const { accepted, usable } = judgeServer(verdict, undefined);
  assert.equal(accepted.status, 'False');
  assert.equal(accepted.reason, 'HostRuleTooWide');
  assert.match(accepted.message, /spec\.egress\.allowedHosts\[1\].*"co\.uk"/);
  assert.equal(usable, undefined);
});
