import assert from 'node:assert/strict';
import { test } from 'node:test';

import { crdSchema } from '#crds/crd-schema.ts';
import { KIND_DEFINITIONS, KINDS } from '#crds/custom-resource.ts';
import { findMissing, untilSchemasServed } from '#operator/reconcile/served-schemas.ts';
import { editValue, type Edits } from '#test/support/edit-value.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

/** The document at /openapi/v3/apis/fairlead.dev/v1alpha1, as far as it matters; edits per kind. */
function served(edits: Edits = {}): unknown {
  const schemas = KINDS.map((kind) => {
    const { spec, status } = KIND_DEFINITIONS[kind];
    return [
      kind,
      {
        'x-kubernetes-group-version-kind': [{ group: 'fairlead.dev', kind, version: 'v1alpha1' }],
        properties: { spec: crdSchema(spec), status: crdSchema(status) },
      },
    ];
  });
  const paths = Object.entries(edits).map(([path, value]) => [`components.schemas.${path}`, value]);
  const document = { components: { schemas: Object.fromEntries(schemas) as unknown } };
  return editValue(document, Object.fromEntries(paths) as Edits);
}

test('the schemas that this version generates lack nothing', () => {
  assert.deepEqual(findMissing(served()), []);
});

test('fields of the server that we do not know are no reason to wait', () => {
  const newer = { 'McpServer.properties.spec.properties.fromTheFuture': { type: 'string' } };
  assert.deepEqual(findMissing(served(newer)), []);
});

const ROWS: readonly (readonly [string, Edits, readonly string[]])[] = [
  [
    'a limit',
    { 'McpServer.properties.spec.properties.limits.properties.maxConcurrency': undefined },
    ['McpServer.spec.limits.maxConcurrency'],
  ],
  [
    'a whole block',
    { 'McpServer.properties.spec.properties.allowedNamespaces': undefined },
    ['McpServer.spec.allowedNamespaces'],
  ],
  [
    'a field of list items',
    { 'McpBinding.properties.spec.properties.servers.items.properties.tools': undefined },
    ['McpBinding.spec.servers[].tools'],
  ],
  [
    'a field of the status',
    { 'McpBinding.properties.status.properties.configRevision': undefined },
    ['McpBinding.status.configRevision'],
  ],
];
for (const [what, edits, missing] of ROWS) {
  test(`a served schema that would drop ${what} is found out (K10)`, () => {
    assert.deepEqual(findMissing(served(edits)), missing);
  });
}

test('a kind that is not served at all is named', () => {
  assert.deepEqual(findMissing({ components: { schemas: {} } }), [...KINDS]);
  assert.deepEqual(findMissing(undefined), [...KINDS]);
});

test('the operator waits until the schemas fit, and says each reason once', async () => {
  const clock = new FakeClock();
  const said: string[] = [];
  const log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (fields: object) => void said.push(JSON.stringify(fields)),
    error: (fields: object) => void said.push(JSON.stringify(fields)),
  };
  const old = served({ 'McpServer.properties.spec.properties.limits': undefined });
  const answers: (() => unknown)[] = [
    () => {
      throw new Error('not there yet');
    },
    () => old,
    () => old,
    () => served(),
  ];
  let asked = 0;
  const client = {
    getJson: async (path: string): Promise<unknown> => {
      assert.equal(path, '/openapi/v3/apis/fairlead.dev/v1alpha1');
      asked += 1;
      return answers[asked - 1]?.();
    },
  };
  let isDone = false;
  const done = untilSchemasServed({ client, clock, log, signal: new AbortController().signal });
  void done.then(() => (isDone = true));
  while (!isDone) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(1_000);
  }
  assert.equal(asked, 4);
  assert.equal(said.length, 2);
  assert.match(said[1] ?? '', /McpServer\.spec\.limits/);
});

test('a stop ends the wait', async () => {
  const stop = new AbortController();
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const client = { getJson: () => Promise.resolve({}) };
  const waiting = untilSchemasServed({ client, clock: new FakeClock(), log, signal: stop.signal });
  stop.abort(new Error('stopping'));
  await assert.rejects(waiting, /stopping/);
});
