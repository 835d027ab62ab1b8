// What users see of both kinds on a real API server: kubectl explain, columns, defaults, status.
// UPDATE_GOLDEN=1 writes the texts of kubectl explain anew.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { after, test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { validateObject } from '#crds/validate-object.ts';
import { CRD_FILES, applyCrds } from '#test/support/apply-crds.ts';
import { startControlPlane } from '#test/support/control-plane/start-control-plane.ts';
import { editValue } from '#test/support/edit-value.ts';
import { GOOD_BINDING, GOOD_OAUTH_SERVER, GOOD_SERVER } from '#test/support/good-objects.ts';
import { ObjectClient, blamedFields } from '#test/support/object-client.ts';

const STRICT = { development: false, unknownFields: 'refuse' } as const;

const CONDITION = {
  type: 'Ready',
  status: 'True',
  observedGeneration: 1,
  lastTransitionTime: '2026-12-01T00:00:00Z',
  reason: 'Programmed',
  message: 'All is in order.',
} as const;

const owned = new AsyncDisposableStack();
after(() => owned.disposeAsync());
const plane = owned.use(await startControlPlane({ auditLog: false }));
await applyCrds(plane);
const client = owned.use(await ObjectClient.open(plane.kubeconfigPath));

async function kubectl(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await plane.kubectl(args);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** The API server publishes the schema of a new CRD a moment after it serves the kind. */
async function explain(...args: readonly string[]): Promise<string> {
  for (let attempt = 0; attempt < 150; attempt += 1) {
    const { code, stdout } = await plane.kubectl(['explain', ...args]);
    if (code === 0) return stdout;
    await systemClock.sleep(200);
  }
  return kubectl('explain', ...args);
}

for (const resource of ['mcpservers', 'mcpbindings']) {
  test(`kubectl explain ${resource} --recursive says what the golden file says`, async () => {
    const golden = new URL(`${resource}.golden.txt`, import.meta.url);
    const said = await explain('--recursive', `${resource}.fairlead.dev`);
    if (process.env['UPDATE_GOLDEN'] !== undefined) await writeFile(golden, said);
    assert.equal(said, await readFile(golden, 'utf8'));
  });
}

test('kubectl explain has the description of a single field', async () => {
  const said = await explain('mcpservers.spec.limits.streamReadTimeout');
  assert.match(said, /How long an event stream may be silent/);
});

test('the API server finds no fault in the CRDs', async () => {
  for (const file of CRD_FILES) {
    const conditions = await kubectl(
      'get',
      'crd',
      file.replace('.yaml', ''),
      '-o',
      'jsonpath={.status.conditions}',
    );
    const types = (JSON.parse(conditions) as readonly { type: string; status: string }[]).map(
      ({ type, status }) => `${type}=${status}`,
    );
    assert.deepEqual(types.sort(), ['Established=True', 'NamesAccepted=True']);
  }
});

const withNulls = editValue(GOOD_SERVER, {
  'metadata.name': 'nulls',
  'spec.limits': { maxConcurrency: 3, queueTimeout: null },
  'spec.egress.caBundleRef': null,
  'spec.protocol': null,
});
for (const [what, object] of [
  ['a server', GOOD_SERVER],
  ['a server with OAuth', GOOD_OAUTH_SERVER],
  ['a server with nulls', withNulls],
  ['a binding', GOOD_BINDING],
] as const) {
  test(`${what} gets the same defaults as offline (R5)`, async () => {
    const offline = validateObject(object, STRICT);
    assert.ok(offline.kind === 'ok');
    const { status, body } = await client.tryCreate(object);
    assert.equal(status, 201, body.message);
    assert.deepEqual(body['spec'], JSON.parse(JSON.stringify(offline.object.spec)));
    assert.deepEqual(body['status'], { observedGeneration: -1 });
  });
}

test('a strict client may send back what kubectl get printed', async () => {
  await plane.apply(JSON.stringify(GOOD_SERVER));
  const stored: unknown = JSON.parse(await kubectl('get', 'flsrv', 'issues', '-o', 'json'));
  const verdict = validateObject(stored, STRICT);
  assert.deepEqual(verdict.kind === 'invalid' ? verdict.issues : [], []);
});

test('kubectl get fairlead shows both kinds with their columns', async () => {
  await plane.apply(JSON.stringify(GOOD_SERVER));
  await plane.apply(JSON.stringify(GOOD_BINDING));
  const status = { observedGeneration: 1, bindingCount: 1, conditions: [CONDITION] };
  const patched = await client.send(
    {
      method: 'PATCH',
      path: 'mcpservers/issues/status',
      contentType: 'application/merge-patch+json',
    },
    { status },
  );
  assert.equal(patched.status, 200, patched.body.message);
  const lines = (await kubectl('get', 'fairlead', '-o', 'wide'))
    .split('\n')
    .map((line) => line.split(/\s{2,}/).slice(0, -1));
  assert.deepEqual(
    lines.filter(([name]) => name !== undefined && name !== ''),
    [
      ['NAME', 'USER', 'READY', 'REASON', 'REVISION'],
      ['mcpbinding.fairlead.dev/agent', 'robot@example.com'],
      ['NAME', 'ENDPOINT', 'READY', 'REASON', 'AUTHORIZATION', 'ERA', 'SUSPENDED', 'BINDINGS'],
      [
        'mcpserver.fairlead.dev/issues',
        'https://mcp.example.com/mcp',
        'True',
        'Programmed',
        'None',
        'Auto',
        'false',
        '1',
      ],
    ],
  );
});

test('a status is written only through its subresource, and is checked', async () => {
  await plane.apply(JSON.stringify(GOOD_SERVER));
  const contentType = 'application/merge-patch+json';
  const main = await client.send(
    { method: 'PATCH', path: 'mcpservers/issues', contentType },
    { status: { bindingCount: 77 } },
  );
  assert.notEqual((main.body['status'] as { readonly bindingCount?: number }).bindingCount, 77);
  const twice = await client.send(
    { method: 'PATCH', path: 'mcpservers/issues/status', contentType },
    { status: { conditions: [CONDITION, CONDITION] } },
  );
  assert.equal(twice.status, 422);
  assert.ok(blamedFields(twice).includes('status.conditions[1]'));
});

test('server-side apply keeps the overrides of two field managers apart', async () => {
  const apply = (name: string, spec: unknown): ReturnType<typeof client.send> =>
    client.send(
      {
        method: 'PATCH',
        path: 'mcpservers/shared',
        contentType: 'application/apply-patch+yaml',
        query: { fieldManager: name },
      },
      {
        apiVersion: GOOD_SERVER.apiVersion,
        kind: 'McpServer',
        metadata: { name: 'shared' },
        spec,
      },
    );
  const first = await apply('one', {
    ...GOOD_SERVER.spec,
    tools: { allow: ['a'], overrides: [{ name: 'a', effect: 'Write' }] },
  });
  assert.equal(first.status, 201, first.body.message);
  const second = await apply('two', {
    tools: { allow: ['b'], overrides: [{ name: 'b', effect: 'ReadOnly' }] },
  });
  assert.equal(second.status, 200, second.body.message);
  const { tools } = second.body['spec'] as { readonly tools: unknown };
  assert.deepEqual(tools, {
    allow: ['a', 'b'],
    trustReadOnlyHint: false,
    overrides: [
      { name: 'a', effect: 'Write' },
      { name: 'b', effect: 'ReadOnly' },
    ],
  });
});
