// Pins the generated files: current, small enough for the API server and for annotations, and with
// every field described.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { suite, test } from 'node:test';

import { parse } from 'yaml';

import { generatedFiles } from '#crds/generate.ts';

const ROOT = new URL('../../', import.meta.url);
const files = await generatedFiles();

suite('generated files', () => {
  for (const [path, text] of files) {
    test(`${path} is what the schemas say (else: npm run generate)`, async () => {
      assert.equal(await readFile(new URL(path, ROOT), 'utf8'), text);
    });
  }
});

test('each CRD stays under 200 KiB', () => {
  const crds = [...files].filter(([path]) => path.startsWith('crds/'));
  assert.equal(crds.length, 2);
  for (const [path, text] of crds) assert.ok(Buffer.byteLength(text) < 200 * 1024, path);
});

interface Names {
  readonly spec: {
    readonly names: Readonly<Record<string, unknown>>;
    readonly versions: readonly [{ readonly subresources: unknown }];
  };
}

test('names, short names and category are the ones that users type', () => {
  const names = (path: string): unknown => (parse(files.get(path) ?? '') as Names).spec.names;
  assert.deepEqual(names('crds/mcpservers.fairlead.dev.yaml'), {
    kind: 'McpServer',
    listKind: 'McpServerList',
    plural: 'mcpservers',
    singular: 'mcpserver',
    shortNames: ['flsrv'],
    categories: ['fairlead'],
  });
  assert.deepEqual(names('crds/mcpbindings.fairlead.dev.yaml'), {
    kind: 'McpBinding',
    listKind: 'McpBindingList',
    plural: 'mcpbindings',
    singular: 'mcpbinding',
    shortNames: ['flbind'],
    categories: ['fairlead'],
  });
});

test('a CRD keeps no unknown field and has no field of free form', () => {
  for (const [path, text] of files) {
    if (!path.startsWith('crds/')) continue;
    assert.doesNotMatch(
      text,
      /preserve-unknown-fields|int-or-string|embedded-resource|additionalProperties: true|anyOf|oneOf/,
    );
  }
});

test('every rule of a CRD has a message and a reason', () => {
  for (const [path, text] of files) {
    if (!path.startsWith('crds/')) continue;
    for (const rule of rulesIn(parse(text)))
      assert.ok(
        rule['rule'] !== '' && rule['message'] !== undefined && rule['reason'] !== undefined,
        path,
      );
  }
});

function rulesIn(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    key === 'x-kubernetes-validations'
      ? (member as readonly Readonly<Record<string, unknown>>[])
      : rulesIn(member),
  );
}
