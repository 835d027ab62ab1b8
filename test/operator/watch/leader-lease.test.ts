import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KubeClient } from '#operator/kube/kube-client.ts';
import { CONFIG_MAPS, LEASES } from '#operator/kube/kube-object.ts';
import type { KubeObject } from '#operator/kube/kube-object.ts';
import { LeaseLostError } from '#operator/kube/write-gate.ts';
import { LeaderLease } from '#operator/watch/leader-lease.ts';
import { FakeApiServer } from '#test/support/fake-api-server.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

const QUIET = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

/** One process: its own clock, its own client. */
class Elector implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly client: KubeClient;
  readonly lease: LeaderLease;
  readonly lost: string[] = [];
  readonly status: boolean[] = [];
  isLeading = false;

  private constructor(clock: FakeClock, client: KubeClient, identity: string) {
    this.clock = clock;
    this.client = client;
    this.lease = new LeaderLease({
      client,
      namespace: 'default',
      name: 'fairlead-operator',
      identity,
      clock,
      random: () => 0.5,
      log: QUIET,
      onLost: (reason) => void this.lost.push(reason),
      metrics: { leading: (isLeader) => void this.status.push(isLeader) },
    });
    this.lease.acquired.then(
      () => (this.isLeading = true),
      () => undefined,
    );
  }

  static async open(
    api: FakeApiServer,
    identity: string,
    clock = new FakeClock(),
  ): Promise<Elector> {
    const client = await KubeClient.open({
      loadConfig: api.configLoader(),
      clock,
      random: () => 0,
    });
    return new Elector(clock, client, identity);
  }

  async lead(): Promise<void> {
    this.lease.start();
    await this.lease.acquired;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const released = this.lease.release();
    let isReleased = false;
    void released.finally(() => (isReleased = true));
    while (!isReleased) await tick([this.clock], 1_000);
    await this.client[Symbol.asyncDispose]();
  }
}

/** Lets time pass for several processes alike, in steps that leave their requests time to be answered. */
async function tick(clocks: readonly FakeClock[], ms: number): Promise<void> {
  for (const clock of clocks) clock.advance(ms);
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

async function pass(clocks: readonly FakeClock[], ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 250) await tick(clocks, 250);
}

function leaseOf(api: FakeApiServer): { spec: Record<string, unknown>; object: KubeObject } {
  const object = api.store.get({
    collection: '/apis/coordination.k8s.io/v1/leases',
    namespace: 'default',
    name: 'fairlead-operator',
  });
  return { object, spec: Object(object['spec']) };
}

test('The first process makes the Lease and leads; times have six digits', async () => {
  await using api = await FakeApiServer.start();
  await using one = await Elector.open(api, 'one');
  assert.throws(() => one.lease.assertMayWrite(), LeaseLostError);
  await one.lead();
  one.lease.assertMayWrite();
  const { spec } = leaseOf(api);
  assert.equal(spec['holderIdentity'], 'one');
  assert.equal(spec['leaseDurationSeconds'], 15);
  assert.match(String(spec['renewTime']), MICRO_TIME);
  assert.match(String(spec['acquireTime']), MICRO_TIME);
  assert.deepEqual(one.status, [false, true]);
});

test('The leader renews every two seconds and keeps when it acquired', async () => {
  await using api = await FakeApiServer.start();
  await using one = await Elector.open(api, 'one');
  await one.lead();
  const { acquireTime, renewTime } = leaseOf(api).spec;
  const before = api.requests.length;
  await pass([one.clock], 20_000);
  const renewals = api.requests.slice(before);
  assert.ok(
    renewals.length >= 9 && renewals.length <= 10,
    `${String(renewals.length)} renewals in 20 s`,
  );
  assert.ok(renewals.every((request) => request.method === 'PUT'));
  const { spec } = leaseOf(api);
  assert.equal(spec['acquireTime'], acquireTime);
  assert.notEqual(spec['renewTime'], renewTime);
  assert.equal(spec['leaseTransitions'], 0);
});

test('A second process waits while the first renews, and takes over 15 seconds after the last change', async () => {
  await using api = await FakeApiServer.start();
  const first = await Elector.open(api, 'first');
  await first.lead();
  await using second = await Elector.open(api, 'second');
  second.lease.start();
  await pass([first.clock, second.clock], 60_000);
  assert.equal(second.isLeading, false);
  // The first one dies without a word; from here on only the second one's clock moves.
  await pass([second.clock], 14_000);
  assert.equal(second.isLeading, false);
  await pass([second.clock], 4_000);
  assert.equal(second.isLeading, true);
  assert.equal(leaseOf(api).spec['holderIdentity'], 'second');
  assert.equal(leaseOf(api).spec['leaseTransitions'], 1);
  await first.client[Symbol.asyncDispose]();
});

test("Another machine's wrong clock neither speeds up nor delays a take-over", async () => {
  for (const renewTime of ['2001-01-01T00:00:00.000000Z', '2099-01-01T00:00:00.000000Z']) {
    await using api = await FakeApiServer.start();
    api.put(LEASES, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'fairlead-operator', namespace: 'default' },
      spec: {
        holderIdentity: 'other',
        leaseDurationSeconds: 15,
        renewTime,
        acquireTime: renewTime,
      },
    });
    await using one = await Elector.open(api, 'one');
    one.lease.start();
    await pass([one.clock], 14_000);
    assert.equal(one.isLeading, false);
    await pass([one.clock], 3_000);
    assert.equal(one.isLeading, true);
  }
});

test('A process that was frozen may not write before it has noticed, and then loses the lease for good', async () => {
  await using api = await FakeApiServer.start();
  await using one = await Elector.open(api, 'one');
  await one.lead();
  const gated = one.client.gatedBy(one.lease);
  await gated.create(CONFIG_MAPS, configMap('before'));
  const before = api.requests.length;
  one.clock.skip(30_000);
  assert.throws(() => one.lease.assertMayWrite(), LeaseLostError);
  assert.equal(one.lease.isLeader, false);
  await assert.rejects(gated.create(CONFIG_MAPS, configMap('stale')), LeaseLostError);
  assert.equal(api.requests.length, before, 'nothing was sent');
  await pass([one.clock], 1_000);
  assert.equal(one.lost.length, 1);
  assert.equal(api.requests.filter((request) => request.method !== 'GET').length, 2);
});

test('A leader that cannot renew gives up after ten seconds, whatever the requests do', async () => {
  for (const fault of [
    { kind: 'hang' },
    { kind: 'reset' },
    { kind: 'status', status: 500 },
  ] as const) {
    await using api = await FakeApiServer.start();
    await using one = await Elector.open(api, 'one');
    await one.lead();
    api.failNext({}, fault, 1_000);
    await pass([one.clock], 9_500);
    assert.deepEqual(one.lost, []);
    one.lease.assertMayWrite();
    await pass([one.clock], 500);
    assert.equal(one.lost.length, 1, fault.kind);
    assert.throws(() => one.lease.assertMayWrite(), LeaseLostError);
    await pass([one.clock], 60_000);
    assert.equal(one.lost.length, 1, 'it is told once');
    assert.equal(one.status.at(-1), false);
    api.clearFaults();
  }
});

test('A renewal whose answer was lost is made again, and leadership goes on', async () => {
  await using api = await FakeApiServer.start();
  await using one = await Elector.open(api, 'one');
  await one.lead();
  api.failNext({ method: 'PUT' }, { kind: 'act-and-reset' });
  await pass([one.clock], 20_000);
  assert.deepEqual(one.lost, []);
  one.lease.assertMayWrite();
});

test('A Lease that somebody else has taken is a lost one', async () => {
  await using api = await FakeApiServer.start();
  await using one = await Elector.open(api, 'one');
  await one.lead();
  const { object, spec } = leaseOf(api);
  api.put(LEASES, { ...object, spec: { ...spec, holderIdentity: 'thief' } });
  await pass([one.clock], 3_000);
  assert.equal(one.lost.length, 1);
  assert.equal(leaseOf(api).spec['holderIdentity'], 'thief', 'it is not taken back');
});

test('A released Lease is empty and short, so that the next process leads at once', async () => {
  await using api = await FakeApiServer.start();
  const first = await Elector.open(api, 'first');
  await first.lead();
  await using second = await Elector.open(api, 'second');
  second.lease.start();
  await pass([first.clock, second.clock], 5_000);
  await first.lease.release();
  assert.equal(leaseOf(api).spec['holderIdentity'], '');
  assert.equal(leaseOf(api).spec['leaseDurationSeconds'], 1);
  assert.throws(() => first.lease.assertMayWrite(), LeaseLostError);
  assert.deepEqual(first.lost, [], 'a release is no loss');
  await pass([second.clock], 3_000);
  assert.equal(second.isLeading, true);
  await first.client[Symbol.asyncDispose]();
});

test('A process that only waited does not touch the Lease when it leaves', async () => {
  await using api = await FakeApiServer.start();
  await using first = await Elector.open(api, 'first');
  await first.lead();
  const second = await Elector.open(api, 'second');
  second.lease.start();
  await pass([second.clock], 5_000);
  await second[Symbol.asyncDispose]();
  await assert.rejects(second.lease.acquired);
  assert.equal(leaseOf(api).spec['holderIdentity'], 'first');
});

test('Of two processes that see an expired Lease at the same time one leads', async () => {
  await using api = await FakeApiServer.start();
  await using one = await Elector.open(api, 'one');
  await using two = await Elector.open(api, 'two');
  one.lease.start();
  two.lease.start();
  await pass([one.clock, two.clock], 30_000);
  assert.equal([one, two].filter((elector) => elector.isLeading).length, 1);
  assert.deepEqual([...one.lost, ...two.lost], []);
});

test('Timings that could give two leaders are refused', async () => {
  await using api = await FakeApiServer.start();
  await using client = await KubeClient.open({ loadConfig: api.configLoader() });
  const options = {
    client,
    namespace: 'a',
    name: 'b',
    identity: 'c',
    clock: new FakeClock(),
    log: QUIET,
    onLost: () => undefined,
  };
  const timings = { leaseDurationMs: 10_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };
  assert.throws(() => new LeaderLease({ ...options, timings }), TypeError);
});

function configMap(name: string): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } };
}
