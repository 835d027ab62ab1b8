// The operator while its API server is killed and comes back: it stays alive, follows what it
// missed, and writes nothing that is already there.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import {
  bindingObject,
  conditionOf,
  eventually,
  namespaceObject,
  OperatorScene,
  type RunningOperator,
  serverObject,
} from '#test/support/operator-scene.ts';

const OUTAGE_MS = 45_000;

let scene: OperatorScene;
let operator: RunningOperator;

before(async () => {
  scene = await OperatorScene.open();
  await scene.put(namespaceObject('tools'), namespaceObject('team'), serverObject('tools', 'one'));
  await scene.put(bindingObject('team', 'agent', [{ name: 'one', namespace: 'tools' }]));
  operator = scene.startOperator();
  await operator.untilLeading();
  await scene.untilCondition(
    { kind: 'McpBinding', namespace: 'team', name: 'agent' },
    'Ready',
    'True',
  );
});
after(async () => {
  await operator[Symbol.asyncDispose]();
  await scene[Symbol.asyncDispose]();
});

test('An API server that is away for most of a minute fails no probe, and nothing is written twice when it is back (K1) (K2) (R108)', async () => {
  await scene.untilQuiet();
  const before = await scene.find('ConfigMap', 'team', 'fairlead-agent');
  const residentBefore = await operator.metric('process_resident_memory_bytes');
  await scene.plane.stopApiServer('SIGKILL');
  const untilMs = systemClock.monotonicMs() + OUTAGE_MS;
  while (systemClock.monotonicMs() < untilMs) {
    assert.equal((await operator.page('/livez')).status, 200);
    assert.equal((await operator.page('/readyz')).status, 200, 'caches are still there');
    await systemClock.sleep(3_000);
  }
  await scene.plane.startApiServer();
  const mark = await scene.plane.audit.mark();
  // What happens now is seen without a restart.
  await scene.put(bindingObject('team', 'second', [{ name: 'one', namespace: 'tools' }]));
  // After a long outage the watch waits up to a minute, with jitter, before it tries again.
  await eventually(
    'the new binding is Ready',
    async () => {
      const found = await scene.find('McpBinding', 'team', 'second');
      return found !== undefined && conditionOf(found, 'Ready')?.status === 'True'
        ? found
        : undefined;
    },
    120_000,
  );
  await scene.untilQuiet();
  const writes = await scene.operatorWrites(mark);
  const old = writes.filter(({ name }) => name === 'agent' || name === 'fairlead-agent');
  assert.deepEqual(old, [], 'the binding from before is as it was');
  const counts = new Map<string, number>();
  for (const { resource, subresource, name } of writes) {
    const key = `${resource}/${subresource} ${name}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  assert.equal(counts.get('configmaps/ fairlead-second'), 1, JSON.stringify([...counts]));
  const after = await scene.find('ConfigMap', 'team', 'fairlead-agent');
  assert.equal(after?.metadata.resourceVersion, before?.metadata.resourceVersion);
  const residentAfter = await operator.metric('process_resident_memory_bytes');
  assert.ok(
    residentAfter < residentBefore * 1.5,
    `${String(residentBefore)} to ${String(residentAfter)} bytes`,
  );
  assert.equal(operator.process.exit, undefined);
});

test('What was changed by hand while the operator could see nothing is put back when it can', async () => {
  await scene.untilQuiet();
  const right = await scene.configText('team', 'agent');
  operator.process.signal('SIGSTOP');
  await scene.patch('configmap fairlead-agent', 'team', { data: { 'config.json': '{}' } });
  assert.equal(await scene.configText('team', 'agent'), '{}');
  operator.process.signal('SIGCONT');
  await scene.untilConfig({ namespace: 'team', binding: 'agent' }, (text) => text === right);
});
