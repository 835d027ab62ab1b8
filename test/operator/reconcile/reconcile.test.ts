import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { KubeObject } from '#operator/kube/kube-object.ts';
import { editValue, type Edits } from '#test/support/edit-value.ts';
import { GOOD_OAUTH_SERVER } from '#test/support/good-objects.ts';
import {
  bindingObject,
  conditionOf,
  namespaceObject,
  serverObject,
} from '#test/support/operator-scene.ts';
import { ReconcileScene } from '#test/support/reconcile-scene.ts';
import { createTestAuthority } from '#test/support/test-certificates.ts';

const { certPem } = createTestAuthority();
const BUNDLE: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'ca', namespace: 'tools' },
  data: { 'ca.crt': certPem },
};
const WITH_BUNDLE = {
  egress: { allowedHosts: ['secure.example.com'], caBundleRef: { name: 'ca' } },
};
const BASE = [namespaceObject('tools'), namespaceObject('team', { 'fairlead.dev/tenant': 'acme' })];
const GITHUB = serverObject('tools', 'github');
const BINDING = bindingObject('team', 'agent', [{ name: 'github', namespace: 'tools' }]);

function edited(object: KubeObject, edits: Edits): KubeObject {
  return editValue(object, edits) as KubeObject;
}

function described(scene: ReconcileScene): string[] {
  return scene.takeWrites().map(({ method, path }) => `${method} ${path}`);
}

const AGENT_CONFIG = 'PATCH /api/v1/namespaces/team/configmaps/fairlead-agent';
const AGENT_STATUS = 'PATCH /apis/fairlead.dev/v1alpha1/namespaces/team/mcpbindings/agent/status';

/** Every kind of fault and of reference at once. */
const MIXED: readonly KubeObject[] = [
  ...BASE,
  BUNDLE,
  GITHUB,
  serverObject('tools', 'closed', { allowedNamespaces: { from: 'Same' } }),
  serverObject('tools', 'asleep', { suspend: true }),
  serverObject('tools', 'broken', { limits: { maxConcurrency: 0 } }),
  serverObject('tools', 'secure', { endpoint: 'https://secure.example.com/mcp', ...WITH_BUNDLE }),
  serverObject('tools', 'unresolved', {
    egress: { allowedHosts: ['unresolved.example.com'], caBundleRef: { name: 'absent' } },
  }),
  edited(GOOD_OAUTH_SERVER as unknown as KubeObject, { 'metadata.namespace': 'tools' }),
  BINDING,
  bindingObject(
    'team',
    'everything',
    ['github', 'closed', 'asleep', 'broken', 'secure', 'unresolved', 'tracker', 'absent'].map(
      (name) => ({ name, namespace: 'tools', tools: { allow: ['get_me', 'stray'] } }),
    ),
  ),
  bindingObject('team', 'nothing', [{ name: 'absent' }]),
  edited(bindingObject('team', 'invalid', [{ name: 'github' }]), { 'spec.user.type': 'Anybody' }),
];

test('a second pass over every kind of object writes nothing, however late it comes (K5, K7)', async () => {
  await using scene = await ReconcileScene.open(...MIXED);
  await scene.reconcileAll();
  const first = described(scene);
  const bindings = 4;
  const servers = 7;
  // One status each, and a ConfigMap for each binding that is valid.
  assert.equal(first.length, bindings + servers + (bindings - 1));
  scene.nowMs += 3_600_000;
  await scene.reconcileAll();
  assert.deepEqual(described(scene), []);
});

test('copies that lag behind our own writes do not make us write again', async () => {
  await using scene = await ReconcileScene.open(...BASE, GITHUB, BINDING);
  await scene.caughtUp();
  // From here on the copies hear of nothing.
  scene.api.failNext({ isWatch: true }, { kind: 'hang' }, 100);
  for (const watch of scene.api.openWatches) watch.end();
  await scene.api.until(() => scene.api.openWatches.length === 0);
  for (let run = 0; run < 3; run += 1) {
    scene.nowMs += 5_000;
    await scene.reconcile('McpServer', 'tools/github');
    await scene.reconcile('McpBinding', 'team/agent');
  }
  assert.equal(scene.world.binding('team/agent')?.status.observedGeneration, 1);
  assert.equal(scene.takeWrites().length, 3);
});

test('conditions of others in the status are no reason to write', async () => {
  await using scene = await ReconcileScene.open(...BASE, GITHUB, BINDING);
  await scene.reconcileAll();
  const server = scene.get('McpServer', 'tools', 'github');
  assert.ok(server);
  const own = (server['status'] as { conditions: unknown[] }).conditions;
  const foreign = {
    type: 'example.com/Audited',
    status: 'True',
    reason: 'Audited',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  scene.api.store.patch(
    {
      collection: '/apis/fairlead.dev/v1alpha1/mcpservers',
      namespace: 'tools',
      name: 'github',
    },
    { status: { conditions: [foreign, ...own.toReversed()] } },
    'status',
  );
  await scene.caughtUp();
  scene.takeWrites();
  await scene.reconcileAll();
  assert.deepEqual(described(scene), []);
});

test('a changed spec is written once, and its transition times stay when nothing flips', async () => {
  await using scene = await ReconcileScene.open(...BASE, GITHUB, BINDING);
  await scene.reconcileAll();
  scene.takeWrites();
  const before = scene.get('McpBinding', 'team', 'agent');
  scene.nowMs += 60_000;
  scene.put(edited(GITHUB, { 'spec.tools.allow': ['get_*'] }));
  await scene.reconcileAll();
  assert.deepEqual(described(scene), [
    'PATCH /apis/fairlead.dev/v1alpha1/namespaces/tools/mcpservers/github/status',
    AGENT_CONFIG,
    AGENT_STATUS,
  ]);
  const after = scene.get('McpBinding', 'team', 'agent');
  assert.ok(before && after);
  for (const type of ['Ready', 'Accepted', 'ResolvedRefs', 'Programmed'])
    assert.equal(
      conditionOf(after, type)?.lastTransitionTime,
      conditionOf(before, type)?.lastTransitionTime,
    );
});

const GATHER_FAULTS = [
  { kind: 'status', status: 500 },
  { kind: 'status', status: 403, reason: 'Forbidden' },
  { kind: 'reset' },
] as const;
for (const fault of GATHER_FAULTS) {
  const what = fault.kind === 'status' ? `answers ${String(fault.status)}` : 'breaks off';
  test(`a CA bundle whose read ${what} is neither there nor missing: nothing is written, and the run fails`, async () => {
    const secure = serverObject('tools', 'github', {
      endpoint: 'https://secure.example.com/mcp',
      ...WITH_BUNDLE,
    });
    await using scene = await ReconcileScene.open(...BASE, BUNDLE, secure, BINDING);
    await scene.reconcileAll();
    const good = scene.get('ConfigMap', 'team', 'fairlead-agent');
    scene.takeWrites();
    scene.put({ ...BUNDLE, data: { 'ca.crt': `${certPem}\n` } });
    await scene.caughtUp();
    scene.api.failNext({ method: 'GET', path: /configmaps\/ca$/ }, fault, 100);
    await assert.rejects(scene.reconcile('McpBinding', 'team/agent'));
    await assert.rejects(scene.reconcile('McpServer', 'tools/github'));
    assert.deepEqual(described(scene), []);
    assert.deepEqual(scene.get('ConfigMap', 'team', 'fairlead-agent'), good);
    scene.api.clearFaults();
    await scene.reconcile('McpBinding', 'team/agent');
    assert.deepEqual(described(scene), [AGENT_CONFIG, AGENT_STATUS]);
  });
}

test('a namespace that is not known yet is not one without a tenant: nothing is written', async () => {
  await using scene = await ReconcileScene.open(namespaceObject('tools'), GITHUB, BINDING);
  await scene.caughtUp();
  await assert.rejects(scene.reconcile('McpBinding', 'team/agent'), /not known yet/);
  assert.deepEqual(described(scene), []);
});

test('a ConfigMap that the API server refuses shows in the status while it is tried again', async () => {
  await using scene = await ReconcileScene.open(...BASE, GITHUB, BINDING);
  await scene.caughtUp();
  const refusal = { kind: 'status', status: 403, reason: 'Forbidden' } as const;
  scene.api.failNext({ method: 'PATCH', path: /configmaps\/fairlead-agent$/ }, refusal, 2);
  await assert.rejects(scene.reconcile('McpBinding', 'team/agent'));
  await scene.caughtUp();
  const seen = scene.get('McpBinding', 'team', 'agent');
  assert.ok(seen);
  assert.equal(conditionOf(seen, 'Programmed')?.reason, 'ApplyFailed');
  assert.equal(conditionOf(seen, 'Reconciling')?.reason, 'ProgressingWithRetry');
  assert.equal((seen['status'] as { configRevision?: string }).configRevision, undefined);
  scene.takeWrites();
  await assert.rejects(scene.reconcile('McpBinding', 'team/agent'));
  assert.deepEqual(described(scene), [AGENT_CONFIG], 'the same status is not written again');
  await scene.reconcile('McpBinding', 'team/agent');
  const healed = scene.get('McpBinding', 'team', 'agent');
  assert.ok(healed);
  assert.equal(conditionOf(healed, 'Ready')?.status, 'True');
  assert.equal(conditionOf(healed, 'Reconciling'), undefined);
});

test('a ConfigMap write whose outcome is unknown says nothing about the object, and is tried again', async () => {
  await using scene = await ReconcileScene.open(...BASE, GITHUB, BINDING);
  await scene.caughtUp();
  const path = /configmaps\/fairlead-agent$/;
  scene.api.failNext({ method: 'PATCH', path }, { kind: 'status', status: 500 }, 1);
  await assert.rejects(scene.reconcile('McpBinding', 'team/agent'));
  assert.deepEqual(described(scene), [AGENT_CONFIG]);
  await scene.reconcile('McpBinding', 'team/agent');
  assert.deepEqual(described(scene), [AGENT_CONFIG, AGENT_STATUS]);
});

test('an Event tells a change of Ready once, and not that a new object is in order', async () => {
  await using scene = await ReconcileScene.open(...BASE, GITHUB, BINDING);
  await scene.reconcileAll();
  await scene.reconcileAll();
  assert.deepEqual(scene.events, []);
  scene.remove('McpServer', 'tools', 'github');
  await scene.until(() => scene.world.server('tools/github') === undefined);
  await scene.reconcileAll();
  await scene.reconcileAll();
  assert.deepEqual(
    scene.events.map(({ type, reason }) => [type, reason]),
    [['Warning', 'ServerNotFound']],
  );
  scene.put(GITHUB);
  await scene.reconcileAll();
  assert.deepEqual(
    scene.events.map(({ type, reason }) => [type, reason]),
    [
      ['Warning', 'ServerNotFound'],
      ['Normal', 'Ready'],
    ],
  );
});

test('what is being deleted is left alone, and so is everything in a namespace that ends', async () => {
  const deletionTimestamp = '2026-01-01T00:00:00Z';
  const leaving = edited(BINDING, { 'metadata.deletionTimestamp': deletionTimestamp });
  const ending = edited(namespaceObject('team'), {
    'metadata.deletionTimestamp': deletionTimestamp,
  });
  for (const objects of [
    [...BASE, GITHUB, leaving],
    [namespaceObject('tools'), ending, GITHUB, BINDING],
  ]) {
    await using scene = await ReconcileScene.open(...objects);
    await scene.caughtUp();
    await scene.reconcile('McpBinding', 'team/agent');
    assert.deepEqual(described(scene), []);
  }
});
