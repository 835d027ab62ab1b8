import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CONFIG_MAPS } from '#operator/kube/kube-object.ts';
import { InformerScene, configMap } from '#test/support/informer-scene.ts';

test('A first list is told as such, and then every change once', async () => {
  await using scene = await InformerScene.open();
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
  await using scene = await InformerScene.open({ random: () => 0.5 });
  scene.api.put(CONFIG_MAPS, configMap('a'));
  const listed = String(scene.api.store.version);
  await scene.startWatching();
  const { query } = scene.watch.request;
  assert.equal(query.get('allowWatchBookmarks'), 'true');
  assert.equal(query.get('timeoutSeconds'), '450');
  assert.equal(query.get('resourceVersion'), listed);
});

test('A bookmark moves the version from which the next watch begins', async () => {
  await using scene = await InformerScene.open();
  await scene.startWatching();
  await scene.bookmark(4_711);
  scene.watch.end();
  await scene.untilWatches(2);
  assert.equal(scene.watch.request.query.get('resourceVersion'), '4711');
  assert.deepEqual(scene.relists, ['first']);
});

test('A handler that throws harms neither the other handlers nor the watch', async () => {
  await using scene = await InformerScene.open();
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
  await using scene = await InformerScene.open();
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
  await using scene = await InformerScene.open({
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
  await using scene = await InformerScene.open({
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
