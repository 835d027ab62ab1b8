import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EventRecorder } from '#operator/kube/events.ts';
import type { EventInput } from '#operator/kube/events.ts';
import { KubeClient } from '#operator/kube/kube-client.ts';
import type { KubeObject } from '#operator/kube/kube-object.ts';
import { FakeApiServer } from '#test/support/fake-api-server.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

function binding(name: string): KubeObject {
  return {
    apiVersion: 'fairlead.dev/v1alpha1',
    kind: 'McpBinding',
    metadata: { name, namespace: 'team', uid: `uid-${name}` },
  };
}

function input(note: string, name = 'a'): EventInput {
  return {
    regarding: binding(name),
    type: 'Warning',
    reason: 'ServerNotFound',
    action: 'Resolve',
    note,
  };
}

interface Scene extends AsyncDisposable {
  readonly api: FakeApiServer;
  readonly clock: FakeClock;
  readonly recorder: EventRecorder;
  readonly outcomes: string[];
  stored(): readonly KubeObject[];
}

async function openScene(): Promise<Scene> {
  const api = await FakeApiServer.start();
  const clock = new FakeClock();
  const client = await KubeClient.open({ loadConfig: api.configLoader(), clock, random: () => 0 });
  const outcomes: string[] = [];
  const recorder = new EventRecorder({
    client,
    clock,
    log: { debug: () => undefined },
    controller: 'fairlead.dev/operator',
    instance: 'operator-0',
    metrics: { event: (outcome) => void outcomes.push(outcome) },
  });
  return {
    ...{ api, clock, recorder, outcomes },
    stored: () => api.store.list('/apis/events.k8s.io/v1/events', 'team'),
    async [Symbol.asyncDispose]() {
      await recorder.close();
      await client[Symbol.asyncDispose]();
      await api[Symbol.asyncDispose]();
    },
  };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

test('An event says what happened to which object, with a time of six digits', async () => {
  await using scene = await openScene();
  scene.recorder.record(input('McpServer "x" does not exist'));
  await until(() => scene.outcomes.length === 1);
  const [event] = scene.stored();
  assert.match(String(event?.['eventTime']), MICRO_TIME);
  assert.deepEqual(event?.['regarding'], {
    apiVersion: 'fairlead.dev/v1alpha1',
    kind: 'McpBinding',
    name: 'a',
    namespace: 'team',
    uid: 'uid-a',
  });
  assert.equal(event['reportingController'], 'fairlead.dev/operator');
  assert.equal(event['note'], 'McpServer "x" does not exist');
});

test('Equal events become one with a count', async () => {
  await using scene = await openScene();
  for (let round = 0; round < 5; round += 1) {
    scene.recorder.record(input('same'));
    await until(() => scene.outcomes.length === round + 1);
    scene.clock.advance(20_000);
  }
  scene.recorder.record(input('other'));
  await until(() => scene.outcomes.filter((outcome) => outcome === 'written').length === 3);
  assert.equal(scene.stored().length, 2);
  const counted = scene.stored().find((event) => event['note'] === 'same');
  const series = Object(counted?.['series']);
  assert.equal(series.count, 4);
  assert.match(series.lastObservedTime, MICRO_TIME);
});

test('An equal event after a long silence is a new one', async () => {
  await using scene = await openScene();
  scene.recorder.record(input('same'));
  await until(() => scene.outcomes.length === 1);
  scene.clock.advance(360_000);
  scene.recorder.record(input('same'));
  await until(() => scene.outcomes.length === 2);
  assert.equal(scene.stored().length, 2);
});

test('A series whose event has expired begins again', async () => {
  await using scene = await openScene();
  scene.recorder.record(input('same'));
  await until(() => scene.stored().length === 1);
  const [first] = scene.stored();
  scene.api.remove(
    { group: 'events.k8s.io', version: 'v1', kind: 'Event', plural: 'events', isNamespaced: true },
    String(first?.metadata.name),
    'team',
  );
  scene.clock.advance(61_000);
  scene.recorder.record(input('same'));
  await until(() => scene.stored().length === 1);
  assert.notEqual(scene.stored()[0]?.metadata.name, first?.metadata.name);
});

test('One object cannot flood: 25 at once, then one in five minutes; others are not affected', async () => {
  await using scene = await openScene();
  for (let index = 0; index < 40; index += 1) scene.recorder.record(input(`note ${String(index)}`));
  scene.recorder.record(input('of another object', 'b'));
  await until(() => scene.outcomes.length === 41);
  assert.equal(scene.outcomes.filter((outcome) => outcome === 'suppressed').length, 15);
  assert.equal(scene.stored().length, 26);
  scene.clock.advance(300_000);
  scene.recorder.record(input('later'));
  scene.recorder.record(input('later still'));
  await until(() => scene.outcomes.length === 43);
  assert.equal(scene.stored().length, 27);
});

test('What goes wrong with events never reaches the caller', async () => {
  await using scene = await openScene();
  scene.api.failNext({}, { kind: 'status', status: 403 }, 2);
  scene.recorder.record(input('refused'));
  scene.recorder.record(input('refused too'));
  scene.recorder.record(input('written'));
  await until(() => scene.outcomes.length === 3);
  assert.deepEqual(scene.outcomes, ['dropped', 'dropped', 'written']);
  await scene.recorder.close();
  scene.recorder.record(input('too late'));
  assert.equal(scene.outcomes.length, 3);
});

test('Notes and names are cut to what the API server takes', async () => {
  await using scene = await openScene();
  const name = 'n'.repeat(253);
  scene.recorder.record({ ...input('x'.repeat(5_000)), regarding: binding(name) });
  await until(() => scene.outcomes.length === 1);
  const [event] = scene.stored();
  assert.equal(String(event?.['note']).length, 1_024);
  assert.ok(String(event?.metadata.name).length <= 253);
});
