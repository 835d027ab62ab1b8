import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { EventRecorder } from '#operator/kube/events.ts';
import { KubeClient } from '#operator/kube/kube-client.ts';
import { kubeConfigLoader } from '#operator/kube/kube-config.ts';
import { isKubeError } from '#operator/kube/kube-error.ts';
import type { KubeErrorKind } from '#operator/kube/kube-error.ts';
import { CONFIG_MAPS, EVENTS, LEASES, NAMESPACES } from '#operator/kube/kube-object.ts';
import type { KubeObject } from '#operator/kube/kube-object.ts';
import { startControlPlane } from '#test/support/control-plane/start-control-plane.ts';
import type { ControlPlane } from '#test/support/control-plane/start-control-plane.ts';

let plane: ControlPlane;
let client: KubeClient;

before(async () => {
  plane = await startControlPlane();
  client = await KubeClient.open({
    loadConfig: kubeConfigLoader({ kubeconfigPath: plane.kubeconfigPath }),
  });
});

after(async () => {
  await client[Symbol.asyncDispose]();
  await plane[Symbol.asyncDispose]();
});

function configMap(name: string, data: Record<string, string> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data };
}

function refOf(name: string) {
  return { resource: CONFIG_MAPS, namespace: 'default', name };
}

function ofKind(kind: KubeErrorKind): (error: unknown) => boolean {
  return (error) => isKubeError(error, kind);
}

test('Applying the same object twice changes nothing the second time', async () => {
  const first = await client.apply(CONFIG_MAPS, configMap('twice', { k: 'v' }));
  const second = await client.apply(CONFIG_MAPS, configMap('twice', { k: 'v' }));
  assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
});

test("Apply leaves other managers' fields alone and takes its own back by force", async () => {
  await client.apply(CONFIG_MAPS, configMap('shared', { ours: '1' }));
  await plane.kubectl([
    'patch',
    'configmap',
    'shared',
    '-p',
    '{"data":{"theirs":"x","ours":"stolen"}}',
  ]);
  const unforced = client.apply(CONFIG_MAPS, configMap('shared', { ours: '1' }), {
    isForced: false,
  });
  await assert.rejects(unforced, ofKind('conflict'));
  const forced = await client.apply(CONFIG_MAPS, configMap('shared', { ours: '1' }));
  assert.deepEqual(forced['data'], { ours: '1', theirs: 'x' });
  const withdrawn = await client.apply(CONFIG_MAPS, configMap('shared'));
  assert.deepEqual(withdrawn['data'], { theirs: 'x' });
});

test('Optimistic locking, uniqueness and preconditions are told apart', async () => {
  const made = await client.create(CONFIG_MAPS, configMap('locked'));
  await assert.rejects(client.create(CONFIG_MAPS, configMap('locked')), ofKind('already-exists'));
  await client.update(CONFIG_MAPS, { ...made, data: { a: '1' } });
  await assert.rejects(
    client.update(CONFIG_MAPS, { ...made, data: { a: '2' } }),
    ofKind('conflict'),
  );
  const stale = { metadata: { resourceVersion: made.metadata.resourceVersion }, data: { a: '3' } };
  await assert.rejects(client.mergePatch(refOf('locked'), stale), ofKind('conflict'));
  await assert.rejects(client.delete(refOf('locked'), { uid: 'another' }), ofKind('conflict'));
  await client.delete(refOf('locked'), { uid: String(made.metadata.uid) });
  assert.equal(await client.find(refOf('locked')), undefined);
});

test('A dry run checks everything and stores nothing', async () => {
  await client.apply(CONFIG_MAPS, configMap('dry'), { isDryRun: true });
  assert.equal(await client.find(refOf('dry')), undefined);
});

test('A field that the server does not know is refused by name, never dropped in silence', async () => {
  const odd = { ...configMap('odd'), datta: { k: 'v' } };
  await assert.rejects(client.create(CONFIG_MAPS, odd, { fieldValidation: 'Strict' }), (error) => {
    return isKubeError(error, 'invalid') && error.message.includes('datta');
  });
  // Apply refuses it too, but the server calls that an internal error.
  await assert.rejects(client.apply(CONFIG_MAPS, odd), (error) => {
    return isKubeError(error, 'server') && error.status === 500 && error.message.includes('datta');
  });
});

test('Who may not is told so', async () => {
  const kubeconfigPath = await plane.kubeconfigFor({ user: 'nobody' });
  await using nobody = await KubeClient.open({ loadConfig: kubeConfigLoader({ kubeconfigPath }) });
  await assert.rejects(nobody.list(CONFIG_MAPS), ofKind('forbidden'));
});

test('A long list comes in pages and is complete; at an old version it is as it was', async () => {
  const namespace = 'pages';
  await client.create(NAMESPACES, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: namespace },
  });
  const names = Array.from({ length: 120 }, (_, index) => `cm-${String(index).padStart(3, '0')}`);
  for (const name of names) {
    await client.create(CONFIG_MAPS, { ...configMap(name), metadata: { name, namespace } });
  }
  const { items, resourceVersion } = await client.list(CONFIG_MAPS, { namespace, pageSize: 50 });
  assert.deepEqual(
    items.map((item) => item.metadata.name),
    names,
  );
  assert.ok(items.every((item) => item.kind === 'ConfigMap' && item.apiVersion === 'v1'));
  await client.delete({ resource: CONFIG_MAPS, namespace, name: 'cm-000' });
  const now = await client.list(CONFIG_MAPS, { namespace, pageSize: 50 });
  const then = await client.list(CONFIG_MAPS, {
    namespace,
    pageSize: 50,
    exactResourceVersion: resourceVersion,
  });
  assert.equal(now.items.length, 119);
  assert.equal(then.items.length, 120);
});

test('Lists and watches of metadata hold metadata under the kind that was asked for', async () => {
  await client.apply(CONFIG_MAPS, configMap('meta', { big: 'x'.repeat(1_000) }));
  const listed = await client.list(CONFIG_MAPS, { namespace: 'default', isMetadataOnly: true });
  const item = listed.items.find((object) => object.metadata.name === 'meta');
  assert.equal(item?.kind, 'ConfigMap');
  assert.equal(item['data'], undefined);
  const events = client.watch(CONFIG_MAPS, {
    namespace: 'default',
    isMetadataOnly: true,
    resourceVersion: listed.resourceVersion,
    timeoutSeconds: 30,
  });
  await client.mergePatch(refOf('meta'), { data: { more: 'y' } });
  for await (const event of events) {
    assert.equal(event.type, 'MODIFIED');
    assert.equal(event.object.kind, 'ConfigMap');
    assert.equal(event.object['data'], undefined);
    break;
  }
});

test('A token that the server does not know is unauthorized after one more try', async () => {
  const loadConfig = async () => {
    const config = await kubeConfigLoader({ kubeconfigPath: plane.kubeconfigPath })();
    const [cluster] = config.clusters;
    assert.ok(cluster);
    config.loadFromClusterAndUser(cluster, { name: 'stranger', token: 'wrong' });
    return config;
  };
  const codes: string[] = [];
  await using stranger = await KubeClient.open({
    loadConfig,
    metrics: { request: ({ code }) => void codes.push(code) },
  });
  await assert.rejects(stranger.list(CONFIG_MAPS), ofKind('unauthorized'));
  assert.deepEqual(codes, ['401', '401']);
});

test('Lease times with three digits are refused by the server, ours with six are not', async () => {
  const lease = (renewTime: string): KubeObject => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'digits', namespace: 'default' },
    spec: { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime },
  });
  await assert.rejects(client.create(LEASES, lease('2026-01-01T00:00:00.250Z')), ofKind('invalid'));
  await client.create(LEASES, lease('2026-01-01T00:00:00.250000Z'));
});

test('Events and their counts are accepted by the server', async () => {
  const regarding = await client.apply(CONFIG_MAPS, configMap('eventful'));
  let wallMs = systemClock.nowMs();
  let monotonicMs = 0;
  const outcomes: string[] = [];
  const recorder = new EventRecorder({
    client,
    clock: { ...systemClock, nowMs: () => wallMs, monotonicMs: () => monotonicMs },
    log: { debug: (details: unknown) => void outcomes.push(JSON.stringify(details)) },
    controller: 'fairlead.dev/operator',
    instance: 'operator-0',
    metrics: { event: (outcome) => void outcomes.push(outcome) },
  });
  for (let round = 0; round < 2; round += 1) {
    recorder.record({
      regarding,
      type: 'Normal',
      reason: 'Programmed',
      action: 'Apply',
      note: 'revision 1',
    });
    while (outcomes.length <= round) await systemClock.sleep(10);
    wallMs += 61_000;
    monotonicMs += 61_000;
  }
  await recorder.close();
  assert.deepEqual(outcomes, ['written', 'written']);
  const { items } = await client.list(EVENTS, { namespace: 'default' });
  const ours = items.filter((event) => event['reportingController'] === 'fairlead.dev/operator');
  assert.equal(ours.length, 1);
  assert.equal(Object(ours[0]?.['series']).count, 2);
  const seen = await plane.kubectl(['events', '--for', 'configmap/eventful']);
  assert.match(seen.stdout, /Programmed/);
});

test('A version that the server no longer has is expired, for a watch', async () => {
  // A server that was started again remembers no events from before.
  await plane.stopApiServer();
  await plane.startApiServer();
  const watchOld = async () => {
    for await (const _event of client.watch(CONFIG_MAPS, {
      resourceVersion: '1',
      timeoutSeconds: 10,
    }))
      break;
  };
  await assert.rejects(watchOld(), ofKind('expired'));
});
