// Custom resource definitions that are missing or older than the operator: it waits and says so, and
// does not act on objects of which the API server has silently dropped something.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { parse, stringify } from 'yaml';

import { systemClock } from '#core/clock.ts';
import { applyCrds } from '#test/support/apply-crds.ts';
import {
  bindingObject,
  namespaceObject,
  OperatorScene,
  serverObject,
} from '#test/support/operator-scene.ts';

const SERVERS_CRD = new URL('../../../crds/mcpservers.fairlead.dev.yaml', import.meta.url);

interface Schema {
  properties: Record<string, Schema>;
}
interface Crd {
  spec: { versions: { schema: { openAPIV3Schema: Schema } }[] };
}

const BINDING = { kind: 'McpBinding', namespace: 'team', name: 'agent' } as const;

async function putObjects(scene: OperatorScene): Promise<void> {
  await scene.put(
    namespaceObject('tools'),
    namespaceObject('team'),
    serverObject('tools', 'one'),
    bindingObject('team', 'agent', [{ name: 'one', namespace: 'tools' }]),
  );
}

test('Without the CRDs the operator waits and says so, alive but not ready, and works once they are applied', async () => {
  await using scene = await OperatorScene.open({ withCrds: false });
  await using operator = scene.startOperator();
  await operator.process.waitForOutput(/"event":"crds".*apply crds/);
  assert.equal((await operator.page('/livez')).status, 200);
  assert.equal((await operator.page('/readyz')).status, 503);
  await applyCrds(scene.plane);
  await putObjects(scene);
  await operator.untilLeading();
  await scene.untilCondition(BINDING, 'Ready', 'True');
  assert.equal((await operator.page('/readyz')).status, 200);
});

test('With an older CRD that lacks a field the operator names the field and reconciles nothing until it is there (K10)', async () => {
  await using scene = await OperatorScene.open();
  const crd = parse(await readFile(SERVERS_CRD, 'utf8')) as Crd;
  for (const version of crd.spec.versions) {
    const limits = version.schema.openAPIV3Schema.properties['spec']?.properties['limits'];
    assert.ok(limits?.properties['maxResponseBytes']);
    delete limits.properties['maxResponseBytes'];
    // Its default is part of the default of the whole.
    const { default: whole } = limits as { default?: Record<string, unknown> };
    delete whole?.['maxResponseBytes'];
  }
  await scene.plane.apply(stringify(crd));
  await systemClock.sleep(1_000);
  await putObjects(scene);
  const mark = await scene.plane.audit.mark();
  await using operator = scene.startOperator();
  await operator.process.waitForOutput(/"missing":"McpServer\.spec\.limits\.maxResponseBytes"/);
  await systemClock.sleep(3_000);
  assert.deepEqual(await scene.operatorWrites(mark), []);
  assert.equal(await scene.configText('team', 'agent'), undefined);
  assert.equal((await operator.page('/livez')).status, 200);
  await applyCrds(scene.plane);
  await scene.untilCondition(BINDING, 'Ready', 'True');
});

test('SIGTERM while it waits for the CRDs ends it with exit code 0', async () => {
  await using scene = await OperatorScene.open({ withCrds: false });
  await using operator = scene.startOperator({ electsLeader: true });
  await operator.process.waitForOutput(/"event":"crds"/);
  assert.deepEqual(await operator.process.stop(), { code: 0, signal: null });
});
