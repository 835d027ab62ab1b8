import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KubeClient } from '#operator/kube/kube-client.ts';
import { CONFIG_MAPS } from '#operator/kube/kube-object.ts';
import type { KubeObject } from '#operator/kube/kube-object.ts';
import { Informer, withoutManagedFields } from '#operator/watch/informer.ts';
import type { InformerMetrics, InformerOptions } from '#operator/watch/informer.ts';
import { FakeApiServer } from '#test/support/fake-api-server.ts';
import type { Fault } from '#test/support/fake-api-server.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

function configMap(name: string, data: Record<string, string> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data };
}

function addedFrame(name: string, version: number, data: Record<string, string> = {}): string {
  const metadata = { name, namespace: 'default', uid: name, resourceVersion: String(version) };
  return `${JSON.stringify({ type: 'ADDED', object: { ...configMap(name, data), metadata } })}\n`;
}

const QUIET = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

class Scene implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly changes: string[] = [];
  readonly relists: string[] = [];
  readonly errors: unknown[] = [];
  drift = 0;
  contacts = 0;
  readonly api: FakeApiServer;
  readonly client: KubeClient;
  readonly informer: Informer;

  private constructor(
    api: FakeApiServer,
    client: KubeClient,
    options: Partial<InformerOptions>,
    clock: FakeClock,
  ) {
    this.clock = clock;
    this.api = api;
    this.client = client;
    const metrics: InformerMetrics = {
      contact: () => void (this.contacts += 1),
      size: () => undefined,
      watchStarted: () => undefined,
      relist: (reason) => void this.relists.push(reason),
      drift: (differences) => (this.drift += differences),
    };
    this.informer = new Informer({
      client,
      resource: CONFIG_MAPS,
      clock,
      random: () => 0,
      metrics,
      log: { ...QUIET, error: (details: unknown) => void this.errors.push(details) },
      transform: withoutManagedFields,
      ...options,
    });
    this.informer.addHandler((old, current, { key, isInitialList }) => {
      const what = old === undefined ? 'add' : current === undefined ? 'delete' : 'update';
      this.changes.push(`${what} ${key}${isInitialList ? ' (initial)' : ''}`);
    });
  }

  static async open(options: Partial<InformerOptions> = {}): Promise<Scene> {
    const api = await FakeApiServer.start();
    const clock = new FakeClock();
    const client = await KubeClient.open({
      loadConfig: api.configLoader(),
      clock,
      random: () => 0,
    });
    return new Scene(api, client, options, clock);
  }

  /** Starts, and waits for the first list and watch. */
  async startWatching(): Promise<void> {
    this.informer.start();
    await this.informer.synced;
    await this.untilWatches(1);
  }

  /** Until `count` watches have been opened in all, moving the clock on where something waits. */
  async untilWatches(count: number, stepMs = 100): Promise<void> {
    await this.until(
      () => this.api.watches.length >= count && this.api.openWatches.length === 1,
      stepMs,
    );
  }

  async until(condition: () => boolean, stepMs = 0): Promise<void> {
    while (!condition()) {
      await new Promise((resolve) => setImmediate(resolve));
      if (stepMs > 0 && !condition()) this.clock.advance(stepMs);
    }
  }

  get watch() {
    const [watch] = this.api.openWatches;
    assert.ok(watch);
    return watch;
  }

  /** Sends a bookmark and waits until it has arrived. */
  async bookmark(version?: number): Promise<void> {
    const before = this.contacts;
    this.watch.bookmark(version);
    await this.until(() => this.contacts > before);
  }

  takeChanges(): string[] {
    return this.changes.splice(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.informer.stop();
    await this.client[Symbol.asyncDispose]();
    await this.api[Symbol.asyncDispose]();
  }
}

test('A first list is told as such, and then every change once', async () => {
  await using scene = await Scene.open();
  const { api } = scene;
  api.put(CONFIG_MAPS, configMap('a'));
  await scene.startWatching();
  assert.deepEqual(scene.takeChanges(), ['add default/a (initial)']);
  api.put(CONFIG_MAPS, configMap('b'));
  api.put(CONFIG_MAPS, configMap('a', { k: 'v' }));
  api.remove(CONFIG_MAPS, 'b', 'default');
  await scene.until(() => scene.changes.length === 3);
  assert.deepEqual(scene.takeChanges(), ['add default/b', 'update default/a', 'delete default/b']);
  assert.deepEqual(scene.informer.get('default/a')?.['data'], { k: 'v' });
  assert.equal(scene.informer.list().length, 1);
});

test('A watch asks for bookmarks, has an end of five to ten minutes, and begins where the list ended', async () => {
  await using scene = await Scene.open({ random: () => 0.5 });
  scene.api.put(CONFIG_MAPS, configMap('a'));
  const listed = String(scene.api.store.version);
  await scene.startWatching();
  const { query } = scene.watch.request;
  assert.equal(query.get('allowWatchBookmarks'), 'true');
  assert.equal(query.get('timeoutSeconds'), '450');
  assert.equal(query.get('resourceVersion'), listed);
});

test('A bookmark moves the version from which the next watch begins', async () => {
  await using scene = await Scene.open();
  await scene.startWatching();
  await scene.bookmark(4_711);
  scene.watch.end();
  await scene.untilWatches(2);
  assert.equal(scene.watch.request.query.get('resourceVersion'), '4711');
  assert.deepEqual(scene.relists, ['first']);
});

const expiries: readonly [title: string, fault: Fault][] = [
  ['as a status', { kind: 'status', status: 410, reason: 'Expired' }],
  [
    'as an ERROR frame',
    {
      kind: 'raw',
      chunks: [
        '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n',
      ],
      then: 'end',
    },
  ],
];
for (const [title, fault] of expiries) {
  test(`410 ${title} is answered with a full list, which tells the deletes of the gap`, async () => {
    await using scene = await Scene.open();
    const { api } = scene;
    api.put(CONFIG_MAPS, configMap('a'));
    api.put(CONFIG_MAPS, configMap('b'));
    await scene.startWatching();
    scene.takeChanges();
    api.failNext({ isWatch: true }, fault);
    scene.watch.reset();
    await scene.until(() => api.openWatches.length === 0);
    api.remove(CONFIG_MAPS, 'a', 'default');
    api.put(CONFIG_MAPS, configMap('c'));
    await scene.until(() => scene.relists.length === 2 && api.openWatches.length === 1, 100);
    assert.deepEqual(scene.takeChanges(), ['delete default/a', 'add default/c']);
    assert.deepEqual(scene.relists, ['first', 'expired']);
  });
}

test('A server that refuses every version is not hammered', async () => {
  await using scene = await Scene.open();
  scene.api.failNext({ isWatch: true }, { kind: 'status', status: 410, reason: 'Expired' }, 1_000);
  scene.informer.start();
  await scene.informer.synced;
  await scene.clock.advanceAsync(60_000, 600);
  assert.ok(
    scene.api.requests.length < 20,
    `${String(scene.api.requests.length)} requests in a minute`,
  );
});

test('Three watches in a row that end with 200 and nothing lead to a full list, without a busy loop', async () => {
  await using scene = await Scene.open();
  const { api } = scene;
  scene.api.failNext({ isWatch: true }, { kind: 'raw', chunks: [], then: 'end' }, 3);
  api.put(CONFIG_MAPS, configMap('a'));
  scene.informer.start();
  await scene.informer.synced;
  const startedAtMs = scene.clock.monotonicMs();
  await scene.untilWatches(4);
  assert.deepEqual(scene.relists, ['first', 'empty-watches']);
  assert.ok(scene.clock.monotonicMs() - startedAtMs >= 800 + 1_600);
});

test('429 on connect waits as long as the server says, and then there is one watch', async () => {
  await using scene = await Scene.open();
  const { api } = scene;
  api.failNext(
    { isWatch: true },
    { kind: 'status', status: 429, reason: 'TooManyRequests', retryAfter: '7' },
  );
  scene.informer.start();
  await scene.informer.synced;
  await scene.until(() => api.requests.length === 2);
  await scene.clock.advanceAsync(6_900);
  assert.equal(api.requests.length, 2);
  await scene.untilWatches(1);
  assert.equal(api.watches.length, 1);
  assert.deepEqual(scene.relists, ['first']);
});

for (const status of [500, 502, 503, 403, 401]) {
  test(`${String(status)} on connect is tried again more and more slowly, with one watch in the end`, async () => {
    await using scene = await Scene.open();
    const { api } = scene;
    api.failNext({ isWatch: true }, { kind: 'status', status }, 1_000);
    scene.informer.start();
    await scene.informer.synced;
    const before = api.requests.length;
    await scene.clock.advanceAsync(60_000, 600);
    const tries = api.requests.length - before;
    // 0.8 s, doubled: about seven in a minute (a 401 asks twice each time).
    assert.ok(tries >= 4 && tries <= 18, `${String(tries)} tries in a minute`);
    api.clearFaults();
    api.put(CONFIG_MAPS, configMap('late'));
    await scene.untilWatches(1, 1_000);
    await scene.until(() => scene.changes.length === 1);
    assert.equal(api.openWatches.length, 1);
    assert.deepEqual(scene.takeChanges(), ['add default/late']);
  });
}

test('A list that fails at the start is tried again until it works', async () => {
  await using scene = await Scene.open();
  const { api } = scene;
  api.put(CONFIG_MAPS, configMap('a'));
  api.failNext({ isWatch: false }, { kind: 'status', status: 500 }, 2);
  api.failNext({ isWatch: false }, { kind: 'reset' }, 2);
  scene.informer.start();
  await scene.until(() => scene.informer.hasSynced, 500);
  await scene.informer.synced;
  assert.deepEqual(scene.takeChanges(), ['add default/a (initial)']);
});

test('A silent watch is given up five seconds after its own end (K1)', async () => {
  await using scene = await Scene.open();
  await scene.startWatching();
  await scene.clock.advanceAsync(304_000);
  assert.equal(scene.api.watches.length, 1);
  await scene.clock.advanceAsync(2_000);
  await scene.untilWatches(2);
  assert.equal(scene.api.openWatches.length, 1);
});

test('Where bookmarks come, a silence of 150 seconds is enough to give a watch up (K1)', async () => {
  await using scene = await Scene.open();
  await scene.startWatching();
  await scene.bookmark();
  await scene.clock.advanceAsync(149_000);
  assert.equal(scene.api.watches.length, 1);
  await scene.bookmark();
  await scene.clock.advanceAsync(140_000);
  assert.equal(scene.api.watches.length, 1, 'every frame begins the time anew');
  await scene.clock.advanceAsync(11_000);
  await scene.untilWatches(2);
});

test('A list that is never answered is given up after 30 seconds and tried again', async () => {
  await using scene = await Scene.open();
  scene.api.failNext({}, { kind: 'hang' });
  scene.informer.start();
  await scene.until(() => scene.api.requests.length === 1);
  await scene.until(() => scene.informer.hasSynced, 1_000);
  assert.equal(
    scene.api.requests.filter((request) => request.query.get('watch') === null).length,
    2,
  );
});

test('A frame that is cut off is not lost: the next watch brings it', async () => {
  await using scene = await Scene.open();
  const { api } = scene;
  await scene.startWatching();
  api.failNext(
    { isWatch: true },
    {
      kind: 'raw',
      chunks: [addedFrame('whole', 101), '{"type":"ADDED","object":{"metadata":{"na'],
      then: 'end',
    },
  );
  scene.watch.reset();
  await scene.until(() => api.watches.length === 2 && api.openWatches.length === 0, 100);
  api.put(CONFIG_MAPS, configMap('whole'));
  api.put(CONFIG_MAPS, configMap('cut'));
  await scene.untilWatches(3);
  await scene.until(() => scene.changes.length === 2);
  assert.deepEqual(scene.takeChanges(), ['add default/whole', 'add default/cut']);
  assert.equal(scene.watch.request.query.get('resourceVersion'), '101');
  assert.deepEqual(scene.relists, ['first']);
});

test('Bytes that stay unreadable are stepped over with a list', async () => {
  await using scene = await Scene.open();
  const { api } = scene;
  api.failNext(
    { isWatch: true },
    { kind: 'raw', chunks: ['<html>bad gateway</html>\n'], then: 'end' },
    3,
  );
  scene.informer.start();
  await scene.informer.synced;
  await scene.until(() => scene.relists.length === 2 && api.openWatches.length === 1, 200);
  assert.deepEqual(scene.relists, ['first', 'malformed']);
});

test('Frames may be split anywhere, also inside a character', async () => {
  await using scene = await Scene.open();
  const bytes = Buffer.from(addedFrame('split', 101, { word: 'grüße 🌍' }));
  scene.api.failNext(
    { isWatch: true },
    { kind: 'raw', chunks: [...bytes].map((byte) => Uint8Array.of(byte)), then: 'stay-open' },
  );
  scene.informer.start();
  await scene.until(() => scene.informer.get('default/split') !== undefined);
  assert.deepEqual(scene.informer.get('default/split')?.['data'], { word: 'grüße 🌍' });
});

test('A connection that breaks is opened again from the last version, without a list', async () => {
  await using scene = await Scene.open();
  const { api } = scene;
  await scene.startWatching();
  for (let round = 1; round <= 5; round += 1) {
    scene.watch.reset();
    await scene.until(() => api.openWatches.length === 0);
    api.put(CONFIG_MAPS, configMap(`in-gap-${String(round)}`));
    await scene.untilWatches(round + 1, 500);
    await scene.until(() => scene.changes.length === round);
  }
  assert.deepEqual(scene.relists, ['first']);
  assert.equal(api.openWatches.length, 1);
});

test('An object that was deleted and made again in a gap is a delete and an add', async () => {
  await using scene = await Scene.open();
  const { api } = scene;
  api.put(CONFIG_MAPS, configMap('a'));
  await scene.startWatching();
  scene.takeChanges();
  api.failNext({ isWatch: true }, { kind: 'status', status: 410, reason: 'Expired' });
  scene.watch.reset();
  await scene.until(() => api.openWatches.length === 0);
  api.remove(CONFIG_MAPS, 'a', 'default');
  api.put(CONFIG_MAPS, configMap('a'));
  await scene.untilWatches(2);
  assert.deepEqual(scene.takeChanges(), ['delete default/a', 'add default/a']);
});

test('A stop during the list opens no watch, and says so to whoever waits for the sync', async () => {
  await using scene = await Scene.open();
  scene.api.failNext({}, { kind: 'hang' });
  scene.informer.start();
  await scene.until(() => scene.api.requests.length === 1);
  await scene.informer.stop();
  await assert.rejects(scene.informer.synced, /stopped/);
  await scene.clock.advanceAsync(60_000);
  assert.equal(scene.api.requests.length, 1);
});

test('A stop closes the watch, and a stop while waiting ends the wait', async () => {
  await using scene = await Scene.open();
  await scene.startWatching();
  await scene.informer.stop();
  await scene.api.until(() => scene.api.openWatches.length === 0);
  assert.equal(scene.clock.pendingTimers, 0);

  await using waiting = await Scene.open();
  waiting.api.failNext({}, { kind: 'status', status: 500 });
  waiting.informer.start();
  await waiting.until(() => waiting.api.requests.length === 1);
  await waiting.until(() => waiting.clock.pendingTimers === 1);
  await waiting.informer.stop();
  assert.equal(waiting.clock.pendingTimers, 0);
});

test('A handler that throws harms neither the other handlers nor the watch', async () => {
  await using scene = await Scene.open();
  scene.informer.addHandler(() => {
    throw new Error('bug');
  });
  const seen: string[] = [];
  scene.informer.addHandler((_old, _current, { key }) => void seen.push(key));
  await scene.startWatching();
  scene.api.put(CONFIG_MAPS, configMap('a'));
  scene.api.put(CONFIG_MAPS, configMap('b'));
  await scene.until(() => seen.length === 2);
  assert.deepEqual(seen, ['default/a', 'default/b']);
  assert.equal(scene.errors.length, 2);
  assert.equal(scene.api.watches.length, 1);
});

test('A handler that comes late hears of everything that is there', async () => {
  await using scene = await Scene.open();
  scene.api.put(CONFIG_MAPS, configMap('a'));
  await scene.startWatching();
  const seen: string[] = [];
  const leave = scene.informer.addHandler(
    (_old, _current, { key, isInitialList }) => void seen.push(`${key} ${String(isInitialList)}`),
  );
  assert.deepEqual(seen, ['default/a true']);
  leave();
  scene.api.put(CONFIG_MAPS, configMap('b'));
  await scene.until(() => scene.changes.length === 2);
  assert.equal(seen.length, 1);
});

test('An object that cannot be read is left out, and the others are not', async () => {
  await using scene = await Scene.open({
    transform: (object) => {
      if (object.metadata.name === 'bad') throw new Error('unreadable');
      return object;
    },
  });
  scene.api.put(CONFIG_MAPS, configMap('bad'));
  scene.api.put(CONFIG_MAPS, configMap('good'));
  await scene.startWatching();
  assert.deepEqual(scene.takeChanges(), ['add default/good (initial)']);
  assert.equal(scene.errors.length, 1);
});

test('Indexes follow the objects', async () => {
  await using scene = await Scene.open({
    indexers: { color: (object) => Object.values(Object(object['data'])) },
  });
  scene.api.put(CONFIG_MAPS, configMap('a', { color: 'red' }));
  await scene.startWatching();
  const names = (color: string) =>
    scene.informer.listByIndex('color', color).map((object) => object.metadata.name);
  assert.deepEqual(names('red'), ['a']);
  scene.api.put(CONFIG_MAPS, configMap('a', { color: 'blue' }));
  await scene.until(() => names('blue').length === 1);
  assert.deepEqual(names('red'), []);
  scene.api.remove(CONFIG_MAPS, 'a', 'default');
  await scene.until(() => names('blue').length === 0);
  assert.throws(() => names.length && scene.informer.listByIndex('no such index', 'x'), TypeError);
});

test('A safety relist finds an event that the watch has lost, counts it, and watches on', async () => {
  await using scene = await Scene.open();
  const { api } = scene;
  api.failNext({ isWatch: true }, { kind: 'raw', chunks: [], then: 'stay-open' }, 10);
  scene.informer.start();
  await scene.informer.synced;
  await scene.until(() => api.openWatches.length === 1);
  api.put(CONFIG_MAPS, configMap('lost'));
  // Bookmarks say that all is well up to this version, the event itself never comes.
  for (let minutes = 0; minutes < 44; minutes += 2) {
    await scene.bookmark();
    await scene.clock.advanceAsync(120_000, 4);
  }
  assert.equal(scene.informer.get('default/lost'), undefined);
  await scene.until(() => scene.relists.length === 2, 1_000);
  assert.deepEqual(scene.takeChanges(), ['add default/lost']);
  assert.equal(scene.drift, 1);
  const exact = api.requests.find(
    (request) => request.query.get('resourceVersionMatch') === 'Exact',
  );
  assert.equal(exact?.query.get('resourceVersion'), String(api.store.version));
  await scene.until(() => api.openWatches.length === 1);
});

test('A hundred cuts leave one watch and no timer behind (K2)', async () => {
  await using scene = await Scene.open();
  const { api } = scene;
  await scene.startWatching();
  const timers = scene.clock.pendingTimers;
  for (let round = 2; round <= 101; round += 1) {
    scene.watch.reset();
    await scene.until(() => api.openWatches.length === 0);
    await scene.untilWatches(round, 5_000);
  }
  assert.equal(api.openWatches.length, 1);
  assert.equal(scene.clock.pendingTimers, timers);
  assert.equal(api.requests.filter((request) => request.query.get('watch') === 'true').length, 101);
});
