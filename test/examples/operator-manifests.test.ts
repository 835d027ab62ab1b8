// What a platform team applies must start the operator of this version, where its probes look for it,
// and give every right to the account that it runs as.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { parseAllDocuments } from 'yaml';

import { VERSION } from '#core/version.ts';
import { readSettings } from '#operator/settings.ts';

interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly subjects?: readonly object[];
  readonly spec?: { readonly template?: { readonly spec: { readonly containers: Container[] } } };
}

async function example(file: string): Promise<readonly Manifest[]> {
  const text = await readFile(new URL(`../../examples/operator/${file}`, import.meta.url), 'utf8');
  return parseAllDocuments(text).map((document) => {
    assert.deepEqual(document.errors, []);
    return document.toJS() as Manifest;
  });
}

const all = await example('operator.yaml');
const oneNamespace = await example('one-namespace.yaml');
const container = all.find(({ kind }) => kind === 'Deployment')?.spec?.template?.spec.containers[0];

test('the Deployment runs the image of this version', () => {
  assert.equal(container?.image, `fairlead:${VERSION}`);
});

test('the Deployment starts the operator, on the ports that its probes and scrapes use', () => {
  const [word, ...flags] = container?.args ?? [];
  assert.equal(word, 'operator');
  const parsed = readSettings(flags, { POD_NAME: 'pod-1' });
  assert.ok(parsed.kind === 'run');
  const { healthPort, metricsPort } = parsed.settings;
  assert.deepEqual(
    container?.ports.map(({ name, containerPort }) => [name, containerPort]),
    [
      ['health', healthPort],
      ['metrics', metricsPort],
    ],
  );
});

test('every right is given to the one account', () => {
  const account = all.find(({ kind }) => kind === 'ServiceAccount')?.metadata;
  const bindings = [...all, ...oneNamespace].filter(({ kind }) => kind.endsWith('RoleBinding'));
  assert.equal(bindings.length, 4);
  for (const { subjects } of bindings)
    assert.deepEqual(subjects, [
      { kind: 'ServiceAccount', name: account?.name, namespace: account?.namespace },
    ]);
});
