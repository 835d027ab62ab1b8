import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { systemClock } from '#core/clock.ts';
import type { Clock } from '#core/clock.ts';
import { KubeClient } from '#operator/kube/kube-client.ts';
import { kubeConfigLoader } from '#operator/kube/kube-config.ts';
import { CONFIG_MAPS, NAMESPACES } from '#operator/kube/kube-object.ts';
import type { KubeObject } from '#operator/kube/kube-object.ts';
import { Informer, withoutManagedFields } from '#operator/watch/informer.ts';
import { startControlPlane } from '#test/support/control-plane/start-control-plane.ts';
import type { ControlPlane } from '#test/support/control-plane/start-control-plane.ts';
import { CutProxy } from '#test/support/cut-proxy.ts';

let plane: ControlPlane;
let proxy: CutProxy;
let direct: KubeClient;
let proxiedConfig: string;

before(async () => {
  plane = await startControlPlane();
  proxy = await CutProxy.start(plane.url);
  proxiedConfig = `${plane.kubeconfigPath}.proxied`;
  const config = await readFile(plane.kubeconfigPath, 'utf8');
  await writeFile(proxiedConfig, config.replaceAll(plane.url, proxy.url), { mode: 0o600 });
  direct = await KubeClient.open({
    loadConfig: kubeConfigLoader({ kubeconfigPath: plane.kubeconfigPath }),
  });
});

after(async () => {
  await direct[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
  await plane[Symbol.asyncDispose]();
});

const QUIET = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** Waits pass a thousand times faster; deadlines and silences do not. */
const HASTY: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms / 1_000, signal),
};

interface Scene extends AsyncDisposable {
  readonly namespace: string;
  readonly userAgent: string;
  readonly informer: Informer;
  readonly changes: string[];
  readonly watches: { started: number };
  until(condition: () => boolean): Promise<void>;
}

async function openScene(namespace: string, clock: Clock = systemClock): Promise<Scene> {
  await direct.create(NAMESPACES, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: namespace },
  });
  const userAgent = `informer-test-${namespace}`;
  const client = await KubeClient.open({
    loadConfig: kubeConfigLoader({ kubeconfigPath: proxiedConfig }),
    userAgent,
  });
  const changes: string[] = [];
  const watches = { started: 0 };
  const informer = new Informer({
    client,
    resource: CONFIG_MAPS,
    namespace,
    clock,
    log: QUIET,
    transform: withoutManagedFields,
    metrics: {
      contact: () => undefined,
      size: () => undefined,
      relist: () => undefined,
      drift: () => undefined,
      watchStarted: () => (watches.started += 1),
    },
  });
  informer.addHandler((old, current, { key }) => {
    const what = old === undefined ? 'add' : current === undefined ? 'delete' : 'update';
    changes.push(`${what} ${key.slice(namespace.length + 1)}`);
  });
  informer.start();
  await informer.synced;
  return {
    ...{ namespace, userAgent, informer, changes, watches },
    until: async (condition) => {
      const deadline = AbortSignal.timeout(120_000);
      while (!condition()) await systemClock.sleep(20, deadline);
    },
    async [Symbol.asyncDispose]() {
      await informer.stop();
      await client[Symbol.asyncDispose]();
    },
  };
}

function configMap(scene: Scene, name: string, data: Record<string, string> = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: scene.namespace },
    data,
  };
}

function refOf(scene: Scene, name: string) {
  return { resource: CONFIG_MAPS, namespace: scene.namespace, name };
}

/** Watches of this informer that the API server has open, by its audit log. */
async function openWatches(scene: Scene, mark: number): Promise<number> {
  const entries = await plane.audit.entriesSince(mark);
  const ours = entries.filter(
    (entry) => entry.userAgent === scene.userAgent && entry.verb === 'watch',
  );
  const count = (stage: string) =>
    ours.filter((entry) => entry.stage === stage && entry.code === 200).length;
  return count('ResponseStarted') - count('ResponseComplete');
}

test('Every add, update and delete is seen once and in order', async () => {
  await using scene = await openScene('orderly');
  await direct.apply(CONFIG_MAPS, configMap(scene, 'a'));
  await direct.apply(CONFIG_MAPS, configMap(scene, 'a', { k: '1' }));
  await direct.apply(CONFIG_MAPS, configMap(scene, 'a', { k: '1' }));
  await direct.apply(CONFIG_MAPS, configMap(scene, 'b'));
  await direct.delete(refOf(scene, 'a'));
  await scene.until(() => scene.changes.length >= 4);
  assert.deepEqual(scene.changes, ['add a', 'update a', 'add b', 'delete a']);
  assert.equal(scene.informer.list().length, 1);
});

test('What changes while the network is cut is told when it is mended', async () => {
  await using scene = await openScene('cut-off');
  await direct.apply(CONFIG_MAPS, configMap(scene, 'stays'));
  await direct.apply(CONFIG_MAPS, configMap(scene, 'goes'));
  await direct.apply(CONFIG_MAPS, configMap(scene, 'is-replaced'));
  await scene.until(() => scene.changes.length === 3);
  scene.changes.length = 0;
  proxy.cut();
  await direct.apply(CONFIG_MAPS, configMap(scene, 'comes'));
  await direct.delete(refOf(scene, 'goes'));
  await direct.delete(refOf(scene, 'is-replaced'));
  await direct.apply(CONFIG_MAPS, configMap(scene, 'is-replaced', { second: 'life' }));
  await direct.apply(CONFIG_MAPS, configMap(scene, 'stays', { changed: 'yes' }));
  await systemClock.sleep(2_000);
  assert.deepEqual(scene.changes, []);
  proxy.mend();
  await scene.until(() => scene.changes.length >= 5);
  assert.deepEqual(scene.changes, [
    'add comes',
    'delete goes',
    'delete is-replaced',
    'add is-replaced',
    'update stays',
  ]);
});

test('An API server that is killed and comes back loses no change, and has one watch of ours', async () => {
  await using scene = await openScene('killed');
  await direct.apply(CONFIG_MAPS, configMap(scene, 'before'));
  await scene.until(() => scene.changes.length === 1);
  await plane.stopApiServer('SIGKILL');
  await systemClock.sleep(6_000);
  assert.equal(scene.informer.list().length, 1, 'the copy serves reads while the server is away');
  await plane.startApiServer();
  const mark = 0;
  await direct.apply(CONFIG_MAPS, configMap(scene, 'after'));
  await direct.delete(refOf(scene, 'before'));
  await scene.until(() => scene.changes.length >= 3);
  assert.deepEqual(scene.changes, ['add before', 'add after', 'delete before']);
  await direct.apply(CONFIG_MAPS, configMap(scene, 'later'));
  await scene.until(() => scene.changes.length >= 4);
  // A killed server writes no end of its watches: only those that it has started since count.
  assert.equal((await openWatches(scene, mark)) - 1, 1);
});

test('Two hundred cuts leave memory, connections and watches as they were', async () => {
  await using scene = await openScene('many-cuts', HASTY);
  for (let index = 0; index < 50; index += 1) {
    await direct.apply(
      CONFIG_MAPS,
      configMap(scene, `cm-${String(index)}`, { text: 'x'.repeat(2_000) }),
    );
  }
  const cutTimes = async (times: number): Promise<void> => {
    for (let round = 0; round < times; round += 1) {
      const before = proxy.accepted;
      proxy.cutOnce();
      await scene.until(() => proxy.accepted > before);
      // Some are cut in the handshake, some in the middle of a watch.
      await systemClock.sleep(round % 3 === 0 ? 0 : 30);
    }
    await direct.apply(
      CONFIG_MAPS,
      configMap(scene, 'probe', { round: String(scene.watches.started) }),
    );
    const seen = () => Object(scene.informer.get(`${scene.namespace}/probe`)?.['data']).round;
    await scene.until(() => seen() === String(scene.watches.started));
  };
  await cutTimes(50);
  const before = heapAfterCollection();
  await cutTimes(200);
  const grownKiB = (heapAfterCollection() - before) / 1_024;
  assert.ok(grownKiB < 2_048, `${grownKiB.toFixed(0)} KiB more after 200 cuts`);
  assert.ok(proxy.openConnections <= 2, `${String(proxy.openConnections)} connections`);
});

/** Bytes in use after the garbage has been collected. */
function heapAfterCollection(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let round = 0; round < 3; round += 1) collect();
  return process.memoryUsage().heapUsed;
}
