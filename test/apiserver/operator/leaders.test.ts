// Two operators on one API server: one acts at any time, whatever happens to it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { LEASES, type KubeObject } from '#operator/kube/kube-object.ts';
import {
  bindingObject,
  eventually,
  namespaceObject,
  OperatorScene,
  type RunningOperator,
  serverObject,
} from '#test/support/operator-scene.ts';

let scene: OperatorScene;

before(async () => {
  scene = await OperatorScene.open();
  await scene.put(namespaceObject('tools'), namespaceObject('team'), serverObject('tools', 'one'));
});

after(async () => {
  await scene[Symbol.asyncDispose]();
});

let bindings = 0;

/** A new binding, for the leader to have something to write. */
async function addBinding(): Promise<void> {
  bindings += 1;
  const name = `agent-${String(bindings)}`;
  await scene.put(bindingObject('team', name, [{ name: 'one', namespace: 'tools' }]));
}

interface Pair extends AsyncDisposable {
  readonly leader: RunningOperator;
  readonly standby: RunningOperator;
  readonly users: { readonly leader: string; readonly standby: string };
}

async function startPair(name: string): Promise<Pair> {
  const users = { leader: `${name}-leader`, standby: `${name}-standby` };
  const start = async (user: string): Promise<RunningOperator> => {
    const kubeconfigPath = await scene.plane.kubeconfigFor({ user, group: 'system:masters' });
    return scene.startOperator({ kubeconfigPath, electsLeader: true, name: user });
  };
  const leader = await start(users.leader);
  await leader.untilLeading();
  const standby = await start(users.standby);
  await standby.process.waitForOutput(/"event":"standby"/);
  await eventually('the standby is ready', async () => {
    return (await standby.page('/readyz')).status === 200 || undefined;
  });
  return {
    ...{ leader, standby, users },
    async [Symbol.asyncDispose]() {
      // In good order, so that the next pair need not wait until the Lease expires.
      await Promise.all([leader.process.stop(), standby.process.stop()]);
    },
  };
}

async function writers(mark: number): Promise<readonly string[]> {
  const writes = await scene.operatorWrites(mark);
  return [...new Set(writes.map(({ user }) => user))];
}

async function secondsUntilLeading(operator: RunningOperator): Promise<number> {
  const startedAtMs = systemClock.monotonicMs();
  await operator.untilLeading();
  return (systemClock.monotonicMs() - startedAtMs) / 1_000;
}

function findLease(): Promise<KubeObject | undefined> {
  return scene.client.find({ resource: LEASES, namespace: 'default', name: 'fairlead-operator' });
}

test('Of two operators one acts; at SIGTERM it gives the lease back and exits 0, and the other takes over at once', async () => {
  await using pair = await startPair('order');
  const mark = await scene.plane.audit.mark();
  await addBinding();
  await scene.untilCondition(
    { kind: 'McpBinding', namespace: 'team', name: `agent-${String(bindings)}` },
    ...(['Ready', 'True'] as const),
  );
  assert.deepEqual(await writers(mark), [pair.users.leader]);
  const exit = pair.leader.process.stop();
  const seconds = await secondsUntilLeading(pair.standby);
  assert.deepEqual(await exit, { code: 0, signal: null });
  assert.ok(seconds < 10, `${seconds.toFixed(1)} s`);
  await scene.untilQuiet();
  assert.deepEqual(await writers(mark), [pair.users.leader], 'there was nothing left to write');
});

test('The last operator leaves a lease that nobody holds', async () => {
  const operator = scene.startOperator({ electsLeader: true });
  await operator.untilLeading();
  const held = (await findLease())?.['spec'] as { holderIdentity?: string };
  assert.notEqual(held.holderIdentity ?? '', '');
  assert.deepEqual(await operator.process.stop(), { code: 0, signal: null });
  const left = (await findLease())?.['spec'] as { holderIdentity?: string };
  assert.equal(left.holderIdentity ?? '', '');
});

test('After a SIGKILL of the leader the other one acts within 20 seconds', async (context) => {
  await using pair = await startPair('killed');
  await pair.leader.process.kill();
  const mark = await scene.plane.audit.mark();
  await addBinding();
  const seconds = await secondsUntilLeading(pair.standby);
  context.diagnostic(`${seconds.toFixed(1)} s`);
  assert.ok(seconds < 20, `${seconds.toFixed(1)} s`);
  await scene.untilCondition(
    { kind: 'McpBinding', namespace: 'team', name: `agent-${String(bindings)}` },
    ...(['Ready', 'True'] as const),
  );
  assert.deepEqual(await writers(mark), [pair.users.standby]);
});

test('A leader that is stopped for 30 seconds is replaced within 20; when it goes on it writes nothing and exits 1 (K9)', async (context) => {
  await using pair = await startPair('frozen');
  const { leader, standby, users } = pair;
  leader.process.signal('SIGSTOP');
  const stoppedAtMs = systemClock.monotonicMs();
  // Work that the stopped one has not seen yet, and would do when it wakes.
  await addBinding();
  const seconds = await secondsUntilLeading(standby);
  context.diagnostic(`${seconds.toFixed(1)} s`);
  assert.ok(seconds < 20, `${seconds.toFixed(1)} s`);
  await addBinding();
  const mark = await scene.plane.audit.mark();
  await systemClock.sleep(30_000 - (systemClock.monotonicMs() - stoppedAtMs));
  leader.process.signal('SIGCONT');
  const exit = await Promise.race([leader.process.exited, systemClock.sleep(10_000)]);
  assert.deepEqual(exit, { code: 1, signal: null });
  await addBinding();
  await scene.untilCondition(
    { kind: 'McpBinding', namespace: 'team', name: `agent-${String(bindings)}` },
    ...(['Ready', 'True'] as const),
  );
  const writes = await scene.plane.audit.writesSince(mark, { withLeases: true });
  assert.deepEqual(
    writes.filter(({ user }) => user === users.leader),
    [],
    'no stale write, not even to the Lease',
  );
  assert.ok(writes.some(({ user }) => user === users.standby));
});
