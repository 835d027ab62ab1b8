import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { stringify } from 'yaml';

import { checkSidecarConfig } from '#core/config/sidecar-config.ts';
import { planDirectory } from '#operator/dev/plan-directory.ts';
import { BAD_OBJECTS, badObject } from '#test/support/bad-objects.ts';
import { GOOD_BINDING, GOOD_SERVER } from '#test/support/good-objects.ts';

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fairlead-plan-'));
});
after(() => rm(directory, { recursive: true }));

async function planOf(...objects: unknown[]) {
  const file = join(directory, 'objects.yaml');
  await writeFile(
    file,
    objects.map((object) => stringify(object, { version: '1.1' })).join('---\n'),
  );
  return planDirectory([file], { development: false });
}

const BINDING = { ...GOOD_BINDING, spec: { ...GOOD_BINDING.spec, servers: [{ name: 'issues' }] } };

suite('the bad objects in a file', () => {
  for (const row of BAD_OBJECTS) {
    test(`${row.title}: refused at ${row.path === '' ? 'the object' : row.path}, with file and line (R7)`, async () => {
      const plan = await planOf(badObject(row));
      assert.equal(plan.kind, 'bad');
      const issues = plan.kind === 'bad' ? plan.issues : [];
      assert.ok(
        issues.some(({ path }) => path === row.path),
        JSON.stringify(issues),
      );
      for (const issue of issues) assert.ok(issue.line >= 1 && issue.file.endsWith('objects.yaml'));
    });
  }
});

test('good objects give one config per binding that the sidecar accepts', async () => {
  const plan = await planOf(GOOD_SERVER, BINDING);
  assert.equal(plan.kind, 'ok', JSON.stringify(plan));
  const [binding] = plan.kind === 'ok' ? plan.bindings : [];
  assert.equal(
    checkSidecarConfig(JSON.parse(binding?.text ?? ''), { development: false }).kind,
    'ok',
  );
});

test('a server that is missing, or does not allow the namespace, is named where the binding names it', async () => {
  const missing = await planOf(BINDING);
  assert.match(
    JSON.stringify(missing),
    /spec\.servers\[0\]\.name.*McpServer default\/issues does not exist/,
  );
  const elsewhere = {
    ...BINDING,
    metadata: { ...BINDING.metadata, namespace: 'other' },
    spec: { ...BINDING.spec, servers: [{ name: 'issues', namespace: 'default' }] },
  };
  const refused = await planOf(GOOD_SERVER, elsewhere);
  assert.match(JSON.stringify(refused), /does not allow namespace other/);
});

test('a Selector admits the namespaces whose labels fit, by the Namespace objects among the files', async () => {
  const server = {
    ...GOOD_SERVER,
    spec: {
      ...GOOD_SERVER.spec,
      allowedNamespaces: { from: 'Selector', selector: { matchLabels: { team: 'a' } } },
    },
  };
  const binding = {
    ...BINDING,
    metadata: { ...BINDING.metadata, namespace: 'other' },
    spec: { ...BINDING.spec, servers: [{ name: 'issues', namespace: 'default' }] },
  };
  const namespace = (labels: object): object => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'other', labels },
  });
  assert.equal((await planOf(server, binding, namespace({ team: 'b' }))).kind, 'bad');
  const plan = await planOf(
    server,
    binding,
    namespace({ team: 'a', 'fairlead.dev/tenant': 'acme' }),
  );
  assert.equal(plan.kind, 'ok');
  assert.match(JSON.stringify(plan), /\\"tenant\\": \\"acme\\"/);
});

test('a CA bundle must be among the files and must be one', async () => {
  const server = {
    ...GOOD_SERVER,
    spec: {
      ...GOOD_SERVER.spec,
      egress: { ...GOOD_SERVER.spec.egress, caBundleRef: { name: 'ca' } },
    },
  };
  assert.match(
    JSON.stringify(await planOf(server, BINDING)),
    /spec\.egress\.caBundleRef.*There is no ConfigMap/,
  );
  const configMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'ca', namespace: 'default' },
    data: { 'ca.crt': 'no pem' },
  };
  assert.match(
    JSON.stringify(await planOf(server, BINDING, configMap)),
    /holds no PEM certificate/,
  );
});

test("a tool that the server's own list does not allow is a warning, not an error", async () => {
  const binding = {
    ...BINDING,
    spec: {
      ...BINDING.spec,
      servers: [{ name: 'issues', tools: { allow: ['get_user', 'drop_all'] } }],
    },
  };
  const plan = await planOf(GOOD_SERVER, binding);
  assert.equal(plan.kind, 'ok');
  assert.match(JSON.stringify(plan.kind === 'ok' ? plan.warnings : []), /drop_all/);
  assert.doesNotMatch(JSON.stringify(plan.kind === 'ok' ? plan.warnings : []), /get_user/);
});

test('what cannot be read, and what holds nothing of ours, is said in one sentence', async () => {
  const absent = await planDirectory([join(directory, 'absent')], { development: false });
  assert.match(absent.kind === 'unreadable' ? absent.message : '', /does not exist/);
  const foreign = await planOf({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' } });
  assert.match(foreign.kind === 'unreadable' ? foreign.message : '', /no McpServer or McpBinding/);
});
