import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import fc from 'fast-check';

import { grantId } from '#core/identity/grant-id.ts';
import type { GrantSubject } from '#core/identity/grant-id.ts';
import { aliasOf, serverId, tenantId, userId } from '#core/identity/ids.ts';
import type { GrantId } from '#core/identity/ids.ts';
import { partitionKey } from '#core/identity/partition-key.ts';
import type { PartitionIdentity } from '#core/identity/partition-key.ts';

/** Hostile on purpose: quotes, brackets, commas and escapes are what an encoding breaks on. */
const part = fc
  .oneof(
    fc.string({ minLength: 1, maxLength: 12 }),
    fc.string({
      minLength: 1,
      maxLength: 8,
      unit: fc.constantFrom('"', '\\', ',', '[', ']', '/', ' ', 'a', '\ud83d\ude00'),
    }),
  )
  .filter((text) => /^[^\u0000-\u001f\u007f]+$/u.test(text));

const identity: fc.Arbitrary<PartitionIdentity> = fc
  .tuple(part, part, part, part, part, part)
  .map(([tenant, user, serverNamespace, serverName, resource, grant]) => ({
    tenant: tenantId(tenant),
    user: userId(user),
    serverNamespace,
    serverName,
    resource,
    grantId: grant as GrantId,
  }));

const sample: PartitionIdentity = {
  tenant: tenantId('acme'),
  user: userId('ada'),
  serverNamespace: 'tools',
  serverName: 'files',
  resource: 'https://files.example.com/mcp',
  grantId: 'g1' as GrantId,
};

suite('partitionKey', () => {
  test('different identities never share a key, equal ones always do (R36)', () => {
    fc.assert(
      fc.property(identity, identity, (a, b) => {
        const isEqual = JSON.stringify(Object.entries(a)) === JSON.stringify(Object.entries(b));
        assert.equal(partitionKey(a) === partitionKey(b), isEqual);
        assert.equal(partitionKey(a), partitionKey({ ...a }));
      }),
      { numRuns: 2000 },
    );
  });

  test('text moved across the border of two parts makes another key (R36)', () => {
    fc.assert(
      fc.property(identity, part, (a, moved) => {
        const left = { ...a, tenant: tenantId(`${a.tenant}${moved}`), user: userId(a.user) };
        const right = { ...a, tenant: tenantId(a.tenant), user: userId(`${moved}${a.user}`) };
        assert.notEqual(partitionKey(left), partitionKey(right));
      }),
    );
  });

  test('the key reads back as its parts, version first', () => {
    fc.assert(
      fc.property(identity, (a) => {
        const { tenant, user, serverNamespace, serverName, resource, grantId: grant } = a;
        assert.deepEqual(JSON.parse(partitionKey(a)), [
          'v1',
          tenant,
          user,
          serverNamespace,
          serverName,
          resource,
          grant,
        ]);
      }),
    );
  });

  test('two users of one tenant share nothing (R36)', () => {
    assert.notEqual(partitionKey(sample), partitionKey({ ...sample, user: userId('bob') }));
  });

  for (const name of Object.keys(sample) as (keyof PartitionIdentity)[]) {
    test(`a key without ${name} is refused: no part is optional`, () => {
      assert.throws(() => partitionKey({ ...sample, [name]: '' }), TypeError);
      assert.throws(() => partitionKey({ ...sample, [name]: undefined }), TypeError);
    });
  }
});

const subject: GrantSubject = {
  tenant: tenantId('acme'),
  user: userId('ada'),
  serverNamespace: 'tools',
  serverName: 'files',
  endpointOrigin: 'https://files.example.com',
  resource: 'https://files.example.com/mcp',
  issuer: '',
  bindingNamespace: 'agents',
};

suite('grantId', () => {
  for (const name of Object.keys(subject) as (keyof GrantSubject)[]) {
    test(`another ${name} is another grant`, () => {
      assert.notEqual(grantId(subject), grantId({ ...subject, [name]: `${subject[name]}x` }));
    });
  }

  test('is 32 hex digits that show none of its parts', () => {
    assert.match(grantId(subject), /^[0-9a-f]{32}$/);
    assert.equal(grantId(subject), grantId({ ...subject }));
  });
});

suite('branded ids', () => {
  for (const text of ['', 'a\nb', 'a\u0000b', 'x'.repeat(513)]) {
    test(`${JSON.stringify(text.slice(0, 8))} of length ${text.length} is no id`, () => {
      for (const parse of [tenantId, userId, aliasOf]) assert.throws(() => parse(text), TypeError);
    });
  }

  test('a server is named by namespace and name', () => {
    assert.equal(serverId('tools', 'files'), 'tools/files');
  });
});
