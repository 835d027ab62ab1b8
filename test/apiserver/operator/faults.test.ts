// An API server that misbehaves, is cut off or is away: the operator keeps living, recovers by itself,
// takes nothing away meanwhile and writes nothing twice.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { type Fault, FaultProxy, type ProxiedRequest } from '#test/support/fault-proxy.ts';
import {
  bindingObject,
  eventually,
  namespaceObject,
  OperatorScene,
  type RunningOperator,
  serverObject,
} from '#test/support/operator-scene.ts';

let scene: OperatorScene;
let proxy: FaultProxy;
let operator: RunningOperator;
let directory: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fairlead-faults-'));
  scene = await OperatorScene.open();
  await scene.put(
    namespaceObject('tools'),
    serverObject('tools', 'one'),
    serverObject('tools', 'two'),
  );
  proxy = await FaultProxy.start(scene.plane.kubeconfigPath);
  const kubeconfigPath = await proxy.writeKubeconfig(join(directory, 'kubeconfig'));
  operator = scene.startOperator({ kubeconfigPath });
  await operator.untilLeading();
});

after(async () => {
  await operator[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
  await scene[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

async function bind(name: string, server: 'one' | 'two'): Promise<void> {
  await scene.put(
    namespaceObject(name),
    bindingObject(name, 'agent', [{ name: server, namespace: 'tools' }]),
  );
}

async function untilBoundTo(
  name: string,
  server: 'one' | 'two',
  timeoutMs = 60_000,
): Promise<void> {
  await eventually(
    `${name} has ${server}`,
    async () => {
      const text = (await scene.configText(name, 'agent')) ?? '{"servers":[]}';
      const { servers } = JSON.parse(text) as { servers: { name: string }[] };
      return servers[0]?.name === server || undefined;
    },
    timeoutMs,
  );
}

async function residentMiB(): Promise<number> {
  const status = await readFile(`/proc/${String(operator.process.pid)}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

/** Accepted writes of one kind in one namespace. */
async function countWrites(namespace: string): Promise<Record<string, number>> {
  const writes = await scene.operatorWrites(0);
  const counts: Record<string, number> = {};
  for (const entry of writes) {
    if (entry.namespace !== namespace || entry.code >= 300) continue;
    const what = `${entry.resource}/${entry.subresource}`;
    counts[what] = (counts[what] ?? 0) + 1;
  }
  return counts;
}

const isWrite = ({ method }: ProxiedRequest): boolean => method !== 'GET';

test('After its watches were cut the operator sees the changes that it missed', async () => {
  await bind('cut', 'one');
  await untilBoundTo('cut', 'one');
  proxy.cutWatches();
  await bind('cut', 'two');
  await untilBoundTo('cut', 'two');
  await eventually(
    'all five watches are open again',
    async () => proxy.openWatches === 5 || undefined,
  );
});

const FAULTS: readonly {
  readonly title: string;
  readonly name: string;
  /** `count` is of reads for a read, of writes for a write. */
  readonly decide: (request: ProxiedRequest, count: number) => Fault;
  /** Writes may be repeated only when the first one may not have been acted on. */
  readonly writes: Readonly<Record<string, number>>;
}[] = [
  {
    title: '429 with Retry-After on every other request',
    name: 'busy',
    decide: (_request, count) =>
      count % 2 === 1 ? { kind: 'status', status: 429, retryAfterSeconds: 1 } : { kind: 'pass' },
    writes: { 'configmaps/': 1, 'mcpbindings/status': 1 },
  },
  {
    title: '500 on the first writes',
    name: 'broken',
    decide: (request, count) =>
      isWrite(request) && count <= 3 ? { kind: 'status', status: 500 } : { kind: 'pass' },
    writes: { 'configmaps/': 1, 'mcpbindings/status': 1 },
  },
  {
    title: 'slow answers',
    name: 'slow',
    decide: (request) => (request.isWatch ? { kind: 'pass' } : { kind: 'slow', delayMs: 2_000 }),
    writes: { 'configmaps/': 1, 'mcpbindings/status': 1 },
  },
];

for (const { title, name, decide, writes } of FAULTS) {
  test(`With ${title} the operator reaches the goal and writes nothing twice`, async () => {
    const counts = { reads: 0, writes: 0 };
    let met = 0;
    proxy.decide = (request) => {
      const fault = decide(request, (counts[isWrite(request) ? 'writes' : 'reads'] += 1));
      if (fault.kind !== 'pass') met += 1;
      return fault;
    };
    try {
      await bind(name, 'one');
      await untilBoundTo(name, 'one');
      await scene.untilCondition(
        { kind: 'McpBinding', namespace: name, name: 'agent' },
        'Ready',
        'True',
      );
      assert.equal((await operator.page('/livez')).status, 200);
    } finally {
      proxy.decide = () => ({ kind: 'pass' });
    }
    assert.ok(met > 0, 'the fault was met');
    await scene.untilQuiet(2_500);
    assert.deepEqual(await countWrites(name), writes);
  });
}

test('An answer that was lost after the write leads to one more write at most', async () => {
  let isLost = false;
  proxy.decide = (request) => {
    const isFirst = !isLost && isWrite(request) && request.url.includes('/lost/configmaps/');
    if (!isFirst) return { kind: 'pass' };
    isLost = true;
    return { kind: 'swallow' };
  };
  await bind('lost', 'one');
  await scene.untilCondition(
    { kind: 'McpBinding', namespace: 'lost', name: 'agent' },
    'Ready',
    'True',
  );
  proxy.decide = () => ({ kind: 'pass' });
  assert.equal(isLost, true);
  await scene.untilQuiet(2_500);
  const { 'configmaps/': configMaps = 0, 'mcpbindings/status': statuses } =
    await countWrites('lost');
  assert.ok(configMaps <= 2, `${String(configMaps)} writes`);
  assert.equal(statuses, 1);
});

for (const [form, fault] of [
  ['as a status', { kind: 'status', status: 410 }],
  ['as a frame', { kind: 'gone-frame' }],
] as const) {
  test(`410 Gone ${form} leads to a list, and the missed changes are seen (K3)`, async () => {
    const name = form === 'as a status' ? 'gone-status' : 'gone-frame';
    await bind(name, 'one');
    await untilBoundTo(name, 'one');
    let left = 5;
    proxy.decide = (request) => {
      if (!request.isWatch || left <= 0) return { kind: 'pass' };
      left -= 1;
      return fault;
    };
    const before = proxy.requests.length;
    proxy.cutWatches();
    await bind(name, 'two');
    await untilBoundTo(name, 'two');
    proxy.decide = () => ({ kind: 'pass' });
    assert.ok(left < 5, 'the fault was met');
    const asked = proxy.requests.slice(before);
    const lists = asked.filter(({ method, isWatch }) => method === 'GET' && !isWatch);
    assert.ok(lists.length >= 1, 'it listed');
    assert.ok(asked.length < 60, `it does not hammer: ${String(asked.length)} requests`);
  });
}

test('An API server that is killed for 35 seconds costs nothing: alive meanwhile, recovered after, memory flat', async () => {
  await bind('away', 'one');
  await untilBoundTo('away', 'one');
  await scene.untilQuiet();
  const memoryBefore = await residentMiB();
  const mark = await scene.plane.audit.mark();
  const requestsBefore = proxy.requests.length;
  await scene.plane.stopApiServer();
  const untilMs = systemClock.monotonicMs() + 35_000;
  while (systemClock.monotonicMs() < untilMs) {
    assert.equal((await operator.page('/livez')).status, 200);
    await systemClock.sleep(1_000);
  }
  const asked = proxy.requests.length - requestsBefore;
  assert.ok(asked < 300, `it does not hammer: ${String(asked)} requests`);
  await scene.plane.startApiServer();
  await bind('away', 'two');
  await untilBoundTo('away', 'two');
  await scene.untilQuiet(3_000);
  // The one change: the ConfigMap, the binding's status, and the counts of both servers.
  const writes = await scene.operatorWrites(mark);
  const accepted = writes
    .filter(({ code }) => code < 300)
    .map(({ resource, name }) => `${resource} ${name}`);
  assert.deepEqual(accepted.toSorted(), [
    'configmaps fairlead-agent',
    'mcpbindings agent',
    'mcpservers one',
    'mcpservers two',
  ]);
  const memoryAfter = await residentMiB();
  assert.ok(
    memoryAfter < memoryBefore + 60,
    `${memoryBefore.toFixed(0)} -> ${memoryAfter.toFixed(0)} MiB`,
  );
  assert.equal(operator.process.exit, undefined);
});
