import assert from 'node:assert/strict';
import { test } from 'node:test';

import { validateObject } from '#crds/validate-object.ts';
import {
  type ConfigMapData,
  type JudgedServer,
  judgeServer,
} from '#operator/reconcile/mcp-server/judge-server.ts';
import { editValue, type Edits } from '#test/support/edit-value.ts';
import { GOOD_OAUTH_SERVER, GOOD_SERVER } from '#test/support/good-objects.ts';
import { createTestAuthority } from '#test/support/test-certificates.ts';

const { certPem } = createTestAuthority();
const BROKEN = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const KEY = '-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n';
const WITH_BUNDLE = { 'spec.egress.caBundleRef': { name: 'ca' } };

function judge(edits: Edits, data?: ConfigMapData, base: unknown = GOOD_SERVER): JudgedServer {
  const verdict = validateObject(editValue(base, edits), {
    development: false,
    unknownFields: 'ignore',
  });
  return judgeServer(verdict, data);
}

test('a good server without references is accepted, resolved and usable', () => {
  const judged = judge({});
  assert.equal(judged.accepted.status, 'True');
  assert.equal(judged.resolvedRefs.status, 'True');
  assert.equal(judged.usable?.server.metadata.name, 'issues');
  assert.equal(judged.usable?.caBundle, undefined);
});

const BUNDLES: readonly (readonly [string, ConfigMapData, 'True' | 'False', RegExp])[] = [
  ['one certificate', { 'ca.crt': certPem }, 'True', /exists/],
  [
    'text around two certificates',
    { 'ca.crt': `# ours\n${certPem}\n${certPem}` },
    'True',
    /exists/,
  ],
  ['no ConfigMap', undefined, 'False', /no ConfigMap "ca"/],
  ['another key', { 'tls.crt': certPem }, 'False', /no key "ca.crt"/],
  ['no data at all', {}, 'False', /no key "ca.crt"/],
  ['no PEM', { 'ca.crt': 'hello' }, 'False', /no PEM certificate/],
  ['an empty bundle', { 'ca.crt': '' }, 'False', /no PEM certificate/],
  ['a broken second certificate', { 'ca.crt': certPem + BROKEN }, 'False', /certificate 2/],
  ['a private key', { 'ca.crt': certPem + KEY }, 'False', /private key/],
  ['too much', { 'ca.crt': certPem.repeat(2_000) }, 'False', /over 524288 characters/],
];
for (const [what, data, status, message] of BUNDLES) {
  test(`a CA bundle with ${what}: ResolvedRefs is ${status}`, () => {
    const judged = judge(WITH_BUNDLE, data);
    assert.equal(judged.resolvedRefs.status, status);
    assert.match(judged.resolvedRefs.message, message);
    assert.equal(
      judged.resolvedRefs.reason,
      status === 'True' ? 'ResolvedRefs' : 'CaBundleInvalid',
    );
    assert.equal(judged.usable?.caBundle, status === 'True' ? data?.['ca.crt'] : undefined);
    assert.equal(judged.usable === undefined, status === 'False');
    assert.doesNotMatch(
      judged.resolvedRefs.message,
      /BEGIN|AAAA|hello/,
      'no value of the ConfigMap',
    );
  });
}

test('an authorization that does not work yet is not accepted, and is not ignored', () => {
  const judged = judge({}, undefined, GOOD_OAUTH_SERVER);
  assert.equal(judged.accepted.status, 'False');
  assert.equal(judged.accepted.reason, 'NotSupported');
  assert.match(judged.accepted.message, /spec\.authorization\.type/);
  assert.equal(judged.usable, undefined);
});

test('a spec from before a stricter schema is not accepted, with the field that is wrong', () => {
  const judged = judge({ 'spec.limits.maxConcurrency': 0 });
  assert.equal(judged.accepted.reason, 'Invalid');
  assert.match(judged.accepted.message, /spec\.limits\.maxConcurrency/);
  assert.equal(judged.resolvedRefs.status, 'Unknown');
  assert.equal(judged.usable, undefined);
});

test('a condition never grows with the number of faults', () => {
  const names = Array.from({ length: 60 }, (_, n) => `bad host ${String(n)} ${'x'.repeat(50)}`);
  const { message } = judge({ 'spec.egress.allowedHosts': names }).accepted;
  assert.ok(message.length <= 1_024, String(message.length));
});
