import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { systemClock } from '#core/clock.ts';
import { ManagedProcess } from '#test/support/control-plane/managed-process.ts';
import { startControlPlane } from '#test/support/control-plane/start-control-plane.ts';
import type { ControlPlane } from '#test/support/control-plane/start-control-plane.ts';

const HOLDER = fileURLToPath(new URL('lease-holder.ts', import.meta.url));
const LEADING = /^leading$/m;

let plane: ControlPlane;

before(async () => {
  plane = await startControlPlane();
});

after(async () => {
  await plane[Symbol.asyncDispose]();
});

function startHolder(identity: string): ManagedProcess {
  const command = [process.execPath, HOLDER, plane.kubeconfigPath, identity];
  return new ManagedProcess({ name: identity, command });
}

async function secondsUntilLeading(holder: ManagedProcess): Promise<number> {
  const startedAtMs = systemClock.monotonicMs();
  await holder.waitForOutput(LEADING, 60_000);
  return (systemClock.monotonicMs() - startedAtMs) / 1_000;
}

interface Pair extends AsyncDisposable {
  readonly leader: ManagedProcess;
  readonly standby: ManagedProcess;
}

/** A leader, and another process that waits. */
async function startPair(name: string): Promise<Pair> {
  const leader = startHolder(`${name}-leader`);
  await leader.waitForOutput(LEADING, 60_000);
  const standby = startHolder(`${name}-standby`);
  // It has seen the Lease at least once, as in any rollout that is over.
  const { audit } = plane;
  const mark = await audit.mark();
  const hasRead = async () =>
    (await audit.entriesSince(mark)).some(
      (entry) => entry.userAgent === `lease-holder/${standby.name}`,
    );
  while (!(await hasRead())) await systemClock.sleep(200);
  return {
    ...{ leader, standby },
    async [Symbol.asyncDispose]() {
      // In good order, so that the next pair need not wait until a Lease expires.
      await Promise.all([leader.stop(), standby.stop()]);
    },
  };
}

test('Of two processes one leads, and only the leader writes', async () => {
  const mark = await plane.audit.mark();
  await using leader = startHolder('one');
  await using standby = startHolder('two');
  await Promise.race([leader.waitForOutput(LEADING), standby.waitForOutput(LEADING)]);
  await systemClock.sleep(6_000);
  const writes = await plane.audit.writesSince(mark, { userAgent: /^lease-holder/ });
  assert.equal(new Set(writes.map((entry) => entry.userAgent)).size, 1);
  assert.ok(writes.length >= 20);
  const leases = (await plane.audit.writesSince(mark, { withLeases: true })).filter(
    (entry) => entry.resource === 'leases',
  );
  assert.ok(
    leases.some((entry) => entry.verb === 'update' && entry.code === 200),
    'renewals are accepted',
  );
});

test('A leader that ends well hands over at once', async () => {
  await using pair = await startPair('well');
  const { leader, standby } = pair;
  assert.deepEqual(await leader.stop(), { code: 0, signal: null });
  const seconds = await secondsUntilLeading(standby);
  assert.ok(seconds < 5, `${seconds.toFixed(1)} s`);
});

test('After a SIGKILL of the leader the other one leads within 20 seconds', async () => {
  await using pair = await startPair('killed');
  const { leader, standby } = pair;
  await leader.kill();
  const seconds = await secondsUntilLeading(standby);
  assert.ok(seconds < 20, `${seconds.toFixed(1)} s`);
});

test('A leader that is stopped for 30 seconds is replaced, and when it goes on it writes nothing and exits (K9)', async () => {
  await using pair = await startPair('frozen');
  const { leader, standby } = pair;
  await systemClock.sleep(2_000);
  leader.signal('SIGSTOP');
  const stoppedAtMs = systemClock.monotonicMs();
  const seconds = await secondsUntilLeading(standby);
  assert.ok(seconds < 20, `${seconds.toFixed(1)} s`);
  const mark = await plane.audit.mark();
  await systemClock.sleep(30_000 - (systemClock.monotonicMs() - stoppedAtMs));
  leader.signal('SIGCONT');
  const exit = await Promise.race([leader.exited, systemClock.sleep(10_000)]);
  assert.deepEqual(exit, { code: 1, signal: null });
  await systemClock.sleep(1_000);
  const writes = await plane.audit.writesSince(mark, {
    userAgent: /^lease-holder/,
    withLeases: true,
  });
  const byOld = writes.filter((entry) => entry.userAgent === `lease-holder/${leader.name}`);
  assert.deepEqual(byOld, []);
  const byNew = writes.filter((entry) => entry.userAgent === `lease-holder/${standby.name}`);
  assert.ok(byNew.length > 20, 'the new leader writes all the time');
});
