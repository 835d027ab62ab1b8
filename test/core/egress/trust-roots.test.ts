import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { EgressError } from '#core/egress/egress-error.ts';
import { trustOf } from '#core/egress/trust-roots.ts';
import { createTestAuthority } from '#test/support/test-certificates.ts';

suite('trustOf', () => {
  const first = createTestAuthority('First').certPem;
  const second = createTestAuthority('Second').certPem;

  test('without a bundle Node keeps its own roots', () =>
    assert.equal(trustOf(undefined), undefined));

  test('equal bundles share one context, different ones never do', () => {
    assert.equal(trustOf(first), trustOf(first));
    assert.notEqual(trustOf(first), trustOf(second));
    assert.notEqual(trustOf(first), trustOf(`${first}${second}`));
  });

  const bad = [
    '',
    'text',
    '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----',
    `${first}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----`,
  ];
  for (const [index, bundle] of bad.entries()) {
    test(`bundle ${index} with a missing or broken certificate is refused whole`, () => {
      assert.throws(
        () => trustOf(bundle),
        (error) => error instanceof EgressError && error.code === 'CA_BUNDLE_INVALID',
      );
    });
  }
});
