import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CONFIG_MAPS } from '#operator/kube/kube-object.ts';
import type { Fault } from '#test/support/fake-api-server.ts';
import { InformerScene, addedFrame, configMap } from '#test/support/informer-scene.ts';

const expiries: readonly [title: string, fault: Fault][] = [
  ['as a status', { kind: 'status', status: 410, reason: 'Expired' }],
  [
    'as an ERROR frame',
    {
      kind: 'raw',
      chunks: [
        '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n',
      ],
      afterwards: 'end',
    },
  ],
];
for (const [title, fault] of expiries) {
  test(`410 ${title} is answered with a full list, which tells the deletes of the gap (K3)`, async () => {
    await using scene = await InformerScene.open();
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
  await using scene = await InformerScene.open();
  scene.api.failNext({ isWatch: true }, { kind: 'status', status: 410, reason: 'Expired' }, 1_000);
  scene.informer.start();
  await scene.informer.synced;
  await scene.clock.advanceAsync(60_000, 600);
  assert.ok(
    scene.api.requests.length < 20,
    `${String(scene.api.requests.length)} requests in a minute`,
  );
});

test('Three watches in a row that end with 200 and nothing lead to a full list, without a busy loop (K3)', async () => {
  await using scene = await InformerScene.open();
  const { api } = scene;
  scene.api.failNext({ isWatch: true }, { kind: 'raw', chunks: [], afterwards: 'end' }, 3);
  api.put(CONFIG_MAPS, configMap('a'));
  scene.informer.start();
  await scene.informer.synced;
  const startedAtMs = scene.clock.monotonicMs();
  await scene.untilWatches(4);
  assert.deepEqual(scene.relists, ['first', 'empty-watches']);
  assert.ok(scene.clock.monotonicMs() - startedAtMs >= 800 + 1_600);
});

test('429 on connect waits as long as the server says, and then there is one watch', async () => {
  await using scene = await InformerScene.open();
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
    await using scene = await InformerScene.open();
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
  await using scene = await InformerScene.open();
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
  await using scene = await InformerScene.open();
  await scene.startWatching();
  await scene.clock.advanceAsync(304_000);
  assert.equal(scene.api.watches.length, 1);
  await scene.clock.advanceAsync(2_000);
  await scene.untilWatches(2);
  assert.equal(scene.api.openWatches.length, 1);
});

test('Where bookmarks come, a silence of 150 seconds is enough to give a watch up (K1)', async () => {
  await using scene = await InformerScene.open();
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
  await using scene = await InformerScene.open();
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
  await using scene = await InformerScene.open();
  const { api } = scene;
  await scene.startWatching();
  api.failNext(
    { isWatch: true },
    {
      kind: 'raw',
      chunks: [addedFrame('whole', 101), '{"type":"ADDED","object":{"metadata":{"na'],
      afterwards: 'end',
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
  await using scene = await InformerScene.open();
  const { api } = scene;
  api.failNext(
    { isWatch: true },
    { kind: 'raw', chunks: ['<html>bad gateway</html>\n'], afterwards: 'end' },
    3,
  );
  scene.informer.start();
  await scene.informer.synced;
  await scene.until(() => scene.relists.length === 2 && api.openWatches.length === 1, 200);
  assert.deepEqual(scene.relists, ['first', 'malformed']);
});

test('Frames may be split anywhere, also inside a character', async () => {
  await using scene = await InformerScene.open();
  const bytes = Buffer.from(addedFrame('split', 101, { word: 'grüße 🌍' }));
  scene.api.failNext(
    { isWatch: true },
    { kind: 'raw', chunks: [...bytes].map((byte) => Uint8Array.of(byte)), afterwards: 'stay-open' },
  );
  scene.informer.start();
  await scene.until(() => scene.informer.get('default/split') !== undefined);
  assert.deepEqual(scene.informer.get('default/split')?.['data'], { word: 'grüße 🌍' });
});

test('A connection that breaks is opened again from the last version, without a list', async () => {
  await using scene = await InformerScene.open();
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
  await using scene = await InformerScene.open();
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
  await using scene = await InformerScene.open();
  scene.api.failNext({}, { kind: 'hang' });
  scene.informer.start();
  await scene.until(() => scene.api.requests.length === 1);
  await scene.informer.stop();
  await assert.rejects(scene.informer.synced, /stopped/);
  await scene.clock.advanceAsync(60_000);
  assert.equal(scene.api.requests.length, 1);
});

test('A stop closes the watch, and a stop while waiting ends the wait', async () => {
  await using scene = await InformerScene.open();
  await scene.startWatching();
  await scene.informer.stop();
  await scene.api.until(() => scene.api.openWatches.length === 0);
  assert.equal(scene.clock.pendingTimers, 0);

  await using waiting = await InformerScene.open();
  waiting.api.failNext({}, { kind: 'status', status: 500 });
  waiting.informer.start();
  await waiting.until(() => waiting.api.requests.length === 1);
  await waiting.until(() => waiting.clock.pendingTimers === 1);
  await waiting.informer.stop();
  assert.equal(waiting.clock.pendingTimers, 0);
});

test('A safety relist finds an event that the watch has lost, counts it, and watches on', async () => {
  await using scene = await InformerScene.open();
  const { api } = scene;
  api.failNext({ isWatch: true }, { kind: 'raw', chunks: [], afterwards: 'stay-open' }, 10);
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
  await using scene = await InformerScene.open();
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
