// What the running operator makes of applied objects, on a real API server: conditions, the ConfigMap,
// what is put back, what is left alone, and that nothing is written twice.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { MAX_CONFIG_BYTES } from '#core/config/sidecar-config.ts';
import type { KubeObject } from '#operator/kube/kube-object.ts';
import {
  bindingObject,
  conditionOf,
  conditionsOf,
  eventually,
  namespaceObject,
  OperatorScene,
  type RunningOperator,
  serverObject,
} from '#test/support/operator-scene.ts';
import { makeTestCa } from '#test/support/test-ca.ts';

const PROGRAM = new URL('../../../bin/fairlead.ts', import.meta.url).pathname;

let scene: OperatorScene;
let operator: RunningOperator;
let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fairlead-operator-'));
  scene = await OperatorScene.open();
  await scene.put(namespaceObject('tools'));
  operator = scene.startOperator();
  await operator.untilLeading();
});

after(async () => {
  await operator[Symbol.asyncDispose]();
  await scene[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** A namespace of the test's own with one server of the same name in `tools`, and a binding on it. */
async function setUp(
  name: string,
  spec: Readonly<Record<string, unknown>> = {},
  labels: Record<string, string> = {},
): Promise<void> {
  await scene.put(
    namespaceObject(name, labels),
    serverObject('tools', name, spec),
    bindingObject(name, 'agent', [{ name, namespace: 'tools' }]),
  );
}

const bindingIn = (namespace: string) =>
  ({ kind: 'McpBinding', namespace, name: 'agent' }) as const;
const serverNamed = (name: string) => ({ kind: 'McpServer', namespace: 'tools', name }) as const;

function parse(text: string): {
  identity: { tenant: string };
  servers: { alias: string; name: string; egress: { caBundle?: string } }[];
} {
  return JSON.parse(text) as ReturnType<typeof parse>;
}

test('Both kinds applied become Ready, and the ConfigMap has the very bytes that render writes', async () => {
  const objects = [
    namespaceObject('happy', { 'fairlead.dev/tenant': 'acme' }),
    serverObject('tools', 'happy', { priority: 3 }),
    bindingObject('happy', 'agent', [{ name: 'happy', namespace: 'tools', alias: 'short' }]),
  ];
  await scene.put(...objects);
  await scene.untilCondition(serverNamed('happy'), 'Ready', 'True');
  const binding = await scene.untilCondition(bindingIn('happy'), 'Ready', 'True');
  assert.deepEqual(
    conditionsOf(binding).map(({ type, status, reason }) => [type, status, reason]),
    [
      ['Ready', 'True', 'Ready'],
      ['Accepted', 'True', 'Accepted'],
      ['ResolvedRefs', 'True', 'ResolvedRefs'],
      ['Programmed', 'True', 'Programmed'],
    ],
  );
  const source = join(directory, 'happy.json');
  await writeFile(source, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  const out = join(directory, 'rendered');
  await promisify(execFile)(process.execPath, [PROGRAM, 'render', source, '--out', out]);
  const rendered = await readFile(join(out, 'happy/agent/config.json'), 'utf8');
  assert.equal(await scene.configText('happy', 'agent'), rendered);
  const status = binding['status'] as Record<string, unknown>;
  assert.equal(status['configRevision'], (JSON.parse(rendered) as { revision: string }).revision);
});

test('kubectl get shows at a glance what people look for', async () => {
  await setUp('columns');
  await scene.untilCondition(bindingIn('columns'), 'Ready', 'True');
  const servers = await scene.run(['get', 'flsrv', 'columns', '-n', 'tools']);
  assert.match(servers, /READY/);
  assert.match(servers, /columns.*True/);
  const bindings = await scene.run(['get', 'flbind', '-n', 'columns']);
  assert.match(bindings, /READY/);
  assert.match(bindings, /agent.*True/);
});

test('An unchanged world is written once: not again by the watch, nor by a new operator', async () => {
  await setUp('quiet');
  await scene.untilCondition(bindingIn('quiet'), 'Ready', 'True');
  await scene.untilQuiet();
  const writes = (await scene.operatorWrites(0)).filter(({ namespace }) => namespace === 'quiet');
  assert.deepEqual(
    writes.map(({ resource, subresource }) => `${resource}/${subresource}`).toSorted(),
    ['configmaps/', 'mcpbindings/status'],
  );
  const mark = await scene.plane.audit.mark();
  // A change that is none of the operator's business, then a new operator beside the old one.
  await scene.run(['annotate', 'mcpbinding/agent', '-n', 'quiet', 'note=hello']);
  await using again = scene.startOperator({ name: 'again' });
  await again.untilLeading();
  await scene.untilQuiet(3_000);
  assert.deepEqual(await scene.operatorWrites(mark), []);
});

const DRIFT: readonly {
  readonly what: string;
  readonly change: (namespace: string) => Promise<unknown>;
}[] = [
  {
    what: 'whose config was changed',
    change: (ns) =>
      scene.patch('configmap fairlead-agent', ns, { data: { 'config.json': '{"servers":[]}' } }),
  },
  {
    what: 'that got another key',
    change: (ns) => scene.patch('configmap fairlead-agent', ns, { data: { 'extra.json': '{}' } }),
  },
  {
    what: 'that got binary data',
    change: (ns) => scene.patch('configmap fairlead-agent', ns, { binaryData: { extra: 'aGk=' } }),
  },
  {
    what: 'that lost a label',
    change: (ns) =>
      scene.patch('configmap fairlead-agent', ns, {
        metadata: { labels: { 'fairlead.dev/binding': null } },
      }),
  },
  {
    what: 'that lost both labels',
    change: (ns) => scene.patch('configmap fairlead-agent', ns, { metadata: { labels: null } }),
  },
  {
    what: 'that lost its owner',
    change: (ns) =>
      scene.patch('configmap fairlead-agent', ns, { metadata: { ownerReferences: null } }),
  },
  {
    what: 'that was deleted',
    change: (ns) => scene.run(['delete', 'configmap', 'fairlead-agent', '-n', ns]),
  },
];

for (const [index, { what, change }] of DRIFT.entries()) {
  test(`A ConfigMap ${what} by hand is put back`, async () => {
    const namespace = `drift-${String(index)}`;
    await setUp(namespace);
    await scene.untilCondition(bindingIn(namespace), 'Ready', 'True');
    await scene.untilQuiet(500);
    const before = await scene.find('ConfigMap', namespace, 'fairlead-agent');
    await change(namespace);
    await eventually('the ConfigMap is as it was', async () => {
      const now = await scene.find('ConfigMap', namespace, 'fairlead-agent');
      assert.deepEqual(essence(now), essence(before));
      return true;
    });
  });
}

function essence(object: KubeObject | undefined): unknown {
  const { labels, ownerReferences } = object?.metadata ?? {};
  return { data: object?.['data'], binaryData: object?.['binaryData'], labels, ownerReferences };
}

test("Somebody else's ConfigMap of that name is never touched, and the binding says so until it is gone", async () => {
  await scene.put(namespaceObject('foreign'));
  const theirs: KubeObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'fairlead-agent', namespace: 'foreign' },
    data: { 'config.json': 'theirs' },
  };
  await scene.put(theirs);
  const { resourceVersion } =
    (await scene.find('ConfigMap', 'foreign', 'fairlead-agent'))?.metadata ?? {};
  await setUp('foreign');
  const binding = await scene.untilCondition(bindingIn('foreign'), 'Programmed', 'ApplyConflict');
  assert.equal(conditionOf(binding, 'Ready')?.status, 'False');
  const now = await scene.find('ConfigMap', 'foreign', 'fairlead-agent');
  assert.equal(now?.metadata.resourceVersion, resourceVersion);
  await scene.run(['delete', 'configmap', 'fairlead-agent', '-n', 'foreign']);
  await scene.untilCondition(bindingIn('foreign'), 'Ready', 'True');
});

test('A config that would be too large is not written and the last good one stays', async () => {
  await setUp('huge');
  await scene.untilCondition(bindingIn('huge'), 'Ready', 'True');
  const good = await scene.configText('huge', 'agent');
  const { caPem } = makeTestCa(directory);
  // Two bundles of 450,000 characters: each is allowed, together they are not.
  const bundle = caPem.repeat(Math.floor(450_000 / caPem.length));
  assert.ok(bundle.length * 3 > MAX_CONFIG_BYTES);
  const servers = ['huge-1', 'huge-2', 'huge-3'];
  for (const name of servers) {
    const data = { 'ca.crt': bundle };
    const configMap = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'tools' },
    };
    await scene.put({ ...configMap, data });
    const egress = { allowedHosts: [`${name}.example.com`], caBundleRef: { name } };
    await scene.put(serverObject('tools', name, { egress }));
  }
  await scene.put(
    bindingObject(
      'huge',
      'agent',
      servers.map((name) => ({ name, namespace: 'tools' })),
    ),
  );
  const binding = await scene.untilCondition(bindingIn('huge'), 'Programmed', 'TooLarge');
  assert.equal(conditionOf(binding, 'Ready')?.reason, 'TooLarge');
  assert.equal(conditionOf(binding, 'Stalled')?.status, 'True');
  assert.equal(await scene.configText('huge', 'agent'), good);
  const revision = (JSON.parse(good ?? '') as { revision: string }).revision;
  assert.equal((binding['status'] as Record<string, unknown>)['configRevision'], revision);
  await scene.put(bindingObject('huge', 'agent', [{ name: 'huge', namespace: 'tools' }]));
  const healed = await scene.untilCondition(bindingIn('huge'), 'Ready', 'True');
  assert.equal(conditionOf(healed, 'Stalled'), undefined);
});

test('A server that is missing is a condition and no access; created later it heals, deleted it goes', async () => {
  await scene.put(
    namespaceObject('absent'),
    serverObject('tools', 'present'),
    bindingObject('absent', 'agent', [
      { name: 'present', namespace: 'tools' },
      { name: 'late', namespace: 'tools' },
    ]),
  );
  const binding = await scene.untilCondition(bindingIn('absent'), 'ResolvedRefs', 'ServerNotFound');
  assert.match(conditionOf(binding, 'ResolvedRefs')?.message ?? '', /tools\/late/);
  assert.equal(conditionOf(binding, 'Programmed')?.status, 'True');
  const at = { namespace: 'absent', binding: 'agent' };
  const names = (text: string): string =>
    parse(text)
      .servers.map(({ name }) => name)
      .join();
  await scene.untilConfig(at, (text) => names(text) === 'present');
  await scene.put(serverObject('tools', 'late'));
  await scene.untilConfig(at, (text) => names(text) === 'late,present');
  await scene.untilCondition(bindingIn('absent'), 'Ready', 'True');
  await scene.run(['delete', 'mcpserver', 'late', '-n', 'tools']);
  await scene.untilConfig(at, (text) => names(text) === 'present');
  await scene.untilCondition(bindingIn('absent'), 'ResolvedRefs', 'ServerNotFound');
});

test('A server that does not allow the namespace is a condition and no access, until a label lets it in', async () => {
  const selector = { matchLabels: { tier: 'gold' } };
  await setUp('refused', { allowedNamespaces: { from: 'Selector', selector } });
  const at = { namespace: 'refused', binding: 'agent' };
  await scene.untilCondition(bindingIn('refused'), 'ResolvedRefs', 'RefNotPermitted');
  await scene.untilConfig(at, (text) => parse(text).servers.length === 0);
  await scene.run(['label', 'namespace', 'refused', 'tier=gold']);
  await scene.untilConfig(at, (text) => parse(text).servers.length === 1);
  await scene.untilCondition(bindingIn('refused'), 'Ready', 'True');
  await eventually('the server counts it', async () => {
    const server = await scene.find('McpServer', 'tools', 'refused');
    const status = server?.['status'] as { bindingCount?: number } | undefined;
    return status?.bindingCount === 1 || undefined;
  });
  await scene.run(['label', 'namespace', 'refused', 'tier-']);
  await scene.untilConfig(at, (text) => parse(text).servers.length === 0);
});

test('An authorization that does not work yet is not accepted and the server is in no config', async () => {
  const authorization = {
    type: 'OAuth',
    oauth: {
      resource: 'https://oauth.example.com/mcp',
      issuer: 'https://login.example.com',
      client: { type: 'Preregistered', id: 'fairlead' },
      redirectUri: 'https://console.example.com/callback',
      scopes: ['read'],
    },
  };
  const egress = { allowedHosts: ['oauth.example.com'], issuers: ['https://login.example.com'] };
  await setUp('oauth', { authorization, egress });
  const server = await scene.untilCondition(serverNamed('oauth'), 'Accepted', 'NotSupported');
  assert.equal(conditionOf(server, 'Ready')?.reason, 'NotSupported');
  assert.equal(conditionOf(server, 'Stalled')?.status, 'True');
  await scene.untilCondition(bindingIn('oauth'), 'ResolvedRefs', 'ServerNotAccepted');
  const text = await scene.untilConfig({ namespace: 'oauth', binding: 'agent' }, () => true);
  assert.deepEqual(parse(text).servers, []);
});

test('The tenant follows the label of the namespace, and is its name without one', async () => {
  await setUp('tenants');
  const at = { namespace: 'tenants', binding: 'agent' };
  await scene.untilConfig(at, (text) => parse(text).identity.tenant === 'tenants');
  await scene.run(['label', 'namespace', 'tenants', 'fairlead.dev/tenant=acme']);
  await scene.untilConfig(at, (text) => parse(text).identity.tenant === 'acme');
  await scene.run(['label', 'namespace', 'tenants', 'fairlead.dev/tenant-']);
  await scene.untilConfig(at, (text) => parse(text).identity.tenant === 'tenants');
});

test('A CA bundle is followed: missing, created, changed, without its key, deleted (K8)', async () => {
  const egress = { allowedHosts: ['bundle.example.com'], caBundleRef: { name: 'bundle-ca' } };
  await setUp('bundle', { egress });
  const at = { namespace: 'bundle', binding: 'agent' };
  const caBundle = (text: string): string | undefined => parse(text).servers[0]?.egress.caBundle;
  const configMap = (data: Record<string, string>): KubeObject => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', data },
    metadata: { name: 'bundle-ca', namespace: 'tools' },
  });
  await scene.untilCondition(serverNamed('bundle'), 'ResolvedRefs', 'CaBundleInvalid');
  await scene.untilCondition(bindingIn('bundle'), 'ResolvedRefs', 'ServerNotAccepted');
  const [first, second] = [makeTestCa(directory).caPem, makeTestCa(directory).caPem];
  await scene.put(configMap({ 'ca.crt': first }));
  await scene.untilConfig(at, (text) => caBundle(text) === first);
  await scene.untilCondition(serverNamed('bundle'), 'Ready', 'True');
  await scene.put(configMap({ 'ca.crt': second }));
  await scene.untilConfig(at, (text) => caBundle(text) === second);
  await scene.put(configMap({ other: second }));
  await scene.untilConfig(at, (text) => parse(text).servers.length === 0);
  await scene.put(configMap({ 'ca.crt': first }));
  await scene.untilConfig(at, (text) => caBundle(text) === first);
  await scene.run(['delete', 'configmap', 'bundle-ca', '-n', 'tools']);
  await scene.untilConfig(at, (text) => parse(text).servers.length === 0);
  await scene.untilCondition(serverNamed('bundle'), 'ResolvedRefs', 'CaBundleInvalid');
});

test('A suspended server leaves the config without a fault, and comes back', async () => {
  await setUp('pause');
  const at = { namespace: 'pause', binding: 'agent' };
  await scene.untilConfig(at, (text) => parse(text).servers.length === 1);
  await scene.put(serverObject('tools', 'pause', { suspend: true }));
  await scene.untilConfig(at, (text) => parse(text).servers.length === 0);
  // The status comes behind the config.
  await eventually('the binding tells why', async () => {
    const binding = await scene.find('McpBinding', 'pause', 'agent');
    const status = binding?.['status'] as
      | { servers?: { state: string; reason: string }[] }
      | undefined;
    const servers = status?.servers ?? [];
    return (servers[0]?.state === 'Excluded' && servers[0].reason === 'Suspended') || undefined;
  });
  await scene.untilCondition(bindingIn('pause'), 'Ready', 'True');
  await scene.put(serverObject('tools', 'pause', { suspend: false }));
  await scene.untilConfig(at, (text) => parse(text).servers.length === 1);
});

test('A binding that was deleted and made anew owns its ConfigMap again', async () => {
  await setUp('anew');
  await scene.untilCondition(bindingIn('anew'), 'Ready', 'True');
  await scene.run(['delete', 'mcpbinding', 'agent', '-n', 'anew']);
  await scene.put(bindingObject('anew', 'agent', [{ name: 'anew', namespace: 'tools' }]));
  const binding = await scene.untilCondition(bindingIn('anew'), 'Ready', 'True');
  await eventually('the new binding is the owner', async () => {
    const { ownerReferences = [] } =
      (await scene.find('ConfigMap', 'anew', 'fairlead-agent'))?.metadata ?? {};
    return (
      (ownerReferences.length === 1 && ownerReferences[0]?.uid === binding.metadata.uid) ||
      undefined
    );
  });
});

test('No object of ours ever gets a finalizer, so that nothing hangs when the operator is gone first (K12)', async () => {
  for (const kind of ['mcpservers', 'mcpbindings', 'configmaps']) {
    const all = JSON.parse(await scene.run(['get', kind, '-A', '-o', 'json'])) as {
      items: KubeObject[];
    };
    assert.ok(all.items.length > 0);
    assert.deepEqual(
      all.items.flatMap(({ metadata }) => metadata['finalizers'] ?? []),
      [],
    );
  }
});
