import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { KubeObject } from '#operator/kube/kube-object.ts';
import { editValue, type Edits } from '#test/support/edit-value.ts';
import { bindingObject, namespaceObject, serverObject } from '#test/support/operator-scene.ts';
import { ReconcileScene } from '#test/support/reconcile-scene.ts';

const CA: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'ca', namespace: 'tools' },
  data: { 'ca.crt': 'one' },
};
const SECURE = serverObject('tools', 'secure', {
  egress: { allowedHosts: ['secure.example.com'], caBundleRef: { name: 'ca' } },
});
const GITHUB = serverObject('tools', 'github');
const AGENT = bindingObject('team', 'agent', [{ name: 'github', namespace: 'tools' }]);
const WORKER = bindingObject('team', 'worker', [{ name: 'secure', namespace: 'tools' }]);
const OTHER = bindingObject('other', 'agent', [{ name: 'github', namespace: 'tools' }]);
const WORLD = [
  ...['tools', 'team', 'other'].map((name) => namespaceObject(name)),
  ...[CA, SECURE, GITHUB, AGENT, WORKER, OTHER],
];

function edited(object: KubeObject, edits: Edits): KubeObject {
  return editValue(object, edits) as KubeObject;
}

const configMap = (namespace: string, name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace },
});

interface Row {
  readonly what: string;
  readonly change: (scene: ReconcileScene) => void;
  readonly servers: readonly string[];
  readonly bindings: readonly string[];
}

const ROWS: readonly Row[] = [
  {
    what: 'a changed server: itself and the bindings that name it',
    change: (scene) => scene.put(edited(GITHUB, { 'spec.priority': 5 })),
    servers: ['tools/github'],
    bindings: ['other/agent', 'team/agent'],
  },
  {
    what: 'a deleted server: the bindings that name it',
    change: (scene) => scene.remove('McpServer', 'tools', 'github'),
    servers: ['tools/github'],
    bindings: ['other/agent', 'team/agent'],
  },
  {
    what: 'a label on a server: nobody',
    change: (scene) => scene.put(edited(GITHUB, { 'metadata.labels': { a: 'b' } })),
    servers: [],
    bindings: [],
  },
  {
    what: 'a binding that names another server: itself, and the servers of before and of now',
    change: (scene) => scene.put(edited(AGENT, { 'spec.servers[0].name': 'secure' })),
    servers: ['tools/github', 'tools/secure'],
    bindings: ['team/agent'],
  },
  {
    what: 'a deleted binding: the servers that count it',
    change: (scene) => scene.remove('McpBinding', 'team', 'worker'),
    servers: ['tools/secure'],
    bindings: ['team/worker'],
  },
  {
    what: 'a label on a namespace: its bindings, and the servers that may select it',
    change: (scene) => scene.put(namespaceObject('team', { 'fairlead.dev/tenant': 'acme' })),
    servers: ['tools/github', 'tools/secure'],
    bindings: ['team/agent', 'team/worker'],
  },
  {
    what: 'an annotation on a namespace: nobody',
    change: (scene) =>
      scene.put(edited(namespaceObject('team'), { 'metadata.annotations': { a: 'b' } })),
    servers: [],
    bindings: [],
  },
  {
    what: 'the data of a CA bundle: the server that trusts it and its bindings (K8)',
    change: (scene) => scene.put({ ...CA, data: { 'ca.crt': 'two' } }),
    servers: ['tools/secure'],
    bindings: ['team/worker'],
  },
  {
    what: 'a ConfigMap that nobody refers to: nobody',
    change: (scene) => scene.put(configMap('tools', 'something')),
    servers: [],
    bindings: [],
  },
];
for (const { what, change, servers, bindings } of ROWS) {
  test(`queued by ${what}`, async () => {
    await using scene = await ReconcileScene.open(...WORLD);
    await scene.reconcileAll();
    await scene.takeQueued();
    change(scene);
    // A marker that arrives after the change, on every copy.
    scene.put(namespaceObject('marker'));
    for (const kind of ['McpServer', 'McpBinding'])
      scene.put(
        kind === 'McpServer'
          ? serverObject('marker', 'm')
          : bindingObject('marker', 'm', [{ name: 'm' }]),
      );
    scene.put(configMap('marker', 'm'));
    await scene.caughtUp();
    const queued = await scene.takeQueued();
    const own = (keys: readonly string[]): string[] => keys.filter((key) => key !== 'marker/m');
    assert.deepEqual(
      { servers: own(queued.servers), bindings: own(queued.bindings) },
      { servers, bindings },
    );
  });
}

test('our own status and ConfigMap writes queue nobody (K5)', async () => {
  await using scene = await ReconcileScene.open(...WORLD);
  await scene.caughtUp();
  await scene.takeQueued();
  await scene.reconcile('McpServer', 'tools/github');
  await scene.reconcile('McpBinding', 'team/agent');
  await scene.caughtUp();
  assert.deepEqual((await scene.takeQueued()).servers, []);
  // The watch may be faster than the answer to the write: then one more run, which writes nothing.
  scene.takeWrites();
  await scene.reconcile('McpBinding', 'team/agent');
  assert.deepEqual(scene.takeWrites(), []);
});

test('a ConfigMap of ours that is changed or deleted by hand queues its binding', async () => {
  await using scene = await ReconcileScene.open(...WORLD);
  await scene.reconcileAll();
  await scene.takeQueued();
  const written = scene.get('ConfigMap', 'team', 'fairlead-agent');
  assert.ok(written);
  scene.put({ ...written, data: { 'config.json': '{}' } });
  await scene.caughtUp();
  assert.deepEqual((await scene.takeQueued()).bindings, ['team/agent']);
  await scene.reconcile('McpBinding', 'team/agent');
  assert.deepEqual(scene.get('ConfigMap', 'team', 'fairlead-agent')?.['data'], written['data']);
  await scene.caughtUp();
  await scene.takeQueued();
  scene.remove('ConfigMap', 'team', 'fairlead-agent');
  await scene.until(
    () =>
      scene.world.ownedConfigMap('team/fairlead-agent') === undefined &&
      scene.world.configMap('team/fairlead-agent') === undefined,
  );
  assert.deepEqual((await scene.takeQueued()).bindings, ['team/agent']);
  await scene.reconcile('McpBinding', 'team/agent');
  assert.deepEqual(scene.get('ConfigMap', 'team', 'fairlead-agent')?.['data'], written['data']);
});
