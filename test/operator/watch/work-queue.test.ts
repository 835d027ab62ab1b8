import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { INITIAL_LIST_PRIORITY, WorkQueue } from '#operator/watch/work-queue.ts';
import type { WorkQueueMetrics } from '#operator/watch/work-queue.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

function openQueue(metrics?: WorkQueueMetrics): { clock: FakeClock; queue: WorkQueue } {
  const clock = new FakeClock();
  const queue = new WorkQueue({
    name: 'test',
    clock,
    ...(metrics === undefined ? {} : { metrics }),
  });
  return { clock, queue };
}

/** What can be taken now, given back at once. */
async function drain(queue: WorkQueue): Promise<string[]> {
  const keys: string[] = [];
  while (queue.depth > 0) {
    const key = await queue.take();
    if (key === undefined) break;
    keys.push(key);
    queue.done(key);
  }
  return keys;
}

test('A key that waits already is not added twice', async () => {
  const { queue } = openQueue();
  queue.add('a');
  queue.add('b');
  queue.add('a');
  assert.deepEqual(await drain(queue), ['a', 'b']);
});

test('A key that is added while it is processed comes again, and not before it is done', async () => {
  const { queue } = openQueue();
  queue.add('a');
  assert.equal(await queue.take(), 'a');
  queue.add('a');
  queue.add('a');
  assert.equal(queue.depth, 0);
  queue.done('a');
  assert.deepEqual(await drain(queue), ['a']);
  assert.ok(queue.isIdle);
});

test('A taker that waits gets the next key, in the order in which takers came', async () => {
  const { queue } = openQueue();
  const first = queue.take();
  const second = queue.take();
  queue.add('a');
  queue.add('b');
  assert.deepEqual(await Promise.all([first, second]), ['a', 'b']);
});

test('Of several later times the earliest counts', async () => {
  const { clock, queue } = openQueue();
  queue.addAfter('a', 1_000);
  queue.addAfter('a', 5_000);
  queue.addAfter('b', 5_000);
  queue.addAfter('b', 2_000);
  clock.advance(999);
  assert.equal(queue.depth, 0);
  clock.advance(1);
  assert.deepEqual(await drain(queue), ['a']);
  clock.advance(1_000);
  assert.deepEqual(await drain(queue), ['b']);
  clock.advance(10_000);
  assert.equal(queue.depth, 0);
});

test('An add makes a later time needless', async () => {
  const { clock, queue } = openQueue();
  queue.addAfter('a', 1_000);
  queue.add('a');
  assert.deepEqual(await drain(queue), ['a']);
  clock.advance(2_000);
  assert.equal(queue.depth, 0);
  assert.equal(clock.pendingTimers, 0);
});

test('Changes go before the first list, and a key keeps its highest priority', async () => {
  const { queue } = openQueue();
  queue.add('old-1', { priority: INITIAL_LIST_PRIORITY });
  queue.add('old-2', { priority: INITIAL_LIST_PRIORITY });
  queue.add('new');
  queue.add('old-2');
  queue.add('new', { priority: INITIAL_LIST_PRIORITY });
  assert.deepEqual(await drain(queue), ['new', 'old-2', 'old-1']);
});

test('A key that fails waits longer each time, up to ten minutes, until it is forgotten', () => {
  const { queue } = openQueue();
  const waits = Array.from({ length: 13 }, () => queue.addRateLimited('a'));
  const doubled = [
    500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000,
  ];
  assert.deepEqual(waits, [...doubled, 600_000, 600_000]);
  assert.equal(queue.failuresOf('a'), 13);
  queue.forget('a');
  assert.equal(queue.addRateLimited('a'), 500);
});

test('Many keys that fail at once are tried again at ten per second', async () => {
  const { clock, queue } = openQueue();
  for (let index = 0; index < 200; index += 1) queue.addRateLimited(`key-${String(index)}`);
  clock.advance(500);
  const first = await drain(queue);
  assert.ok(
    first.length >= 100 && first.length <= 106,
    `${String(first.length)} keys in the first burst`,
  );
  clock.advance(1_000);
  assert.equal((await drain(queue)).length, 10);
  clock.advance(60_000);
  assert.equal((await drain(queue)).length, 200 - first.length - 10);
});

test('A shut down queue hands out nothing, and lets what is in work end', async () => {
  const { clock, queue } = openQueue();
  queue.add('a');
  assert.equal(await queue.take(), 'a');
  const waiting = queue.take();
  queue.addAfter('later', 1_000);
  queue.add('a');
  queue.shutDown();
  assert.equal(await waiting, undefined);
  queue.add('b');
  queue.done('a');
  assert.equal(await queue.take(), undefined);
  assert.equal(clock.pendingTimers, 0);
});

test('Giving back what was not taken is a bug', () => {
  assert.throws(() => openQueue().queue.done('a'), TypeError);
});

test('Waiting, work, depth and retries are measured in seconds and keys', async () => {
  const seen = {
    adds: 0,
    depth: [] as number[],
    waited: [] as number[],
    worked: [] as number[],
    retries: 0,
  };
  const { clock, queue } = openQueue({
    added: () => (seen.adds += 1),
    depth: (keys) => void seen.depth.push(keys),
    waited: (seconds) => void seen.waited.push(seconds),
    worked: (seconds) => void seen.worked.push(seconds),
    retried: () => (seen.retries += 1),
  });
  queue.add('a');
  queue.add('a');
  clock.advance(2_000);
  await queue.take();
  clock.advance(3_000);
  assert.equal(queue.longestRunningSeconds(), 3);
  assert.equal(queue.unfinishedWorkSeconds(), 3);
  queue.done('a');
  queue.addRateLimited('a');
  assert.deepEqual(seen, { adds: 1, depth: [1, 0], waited: [2], worked: [3], retries: 1 });
  assert.equal(queue.longestRunningSeconds(), 0);
});

type Step =
  | { readonly kind: 'add'; readonly key: string; readonly priority: number }
  | { readonly kind: 'add-after'; readonly key: string; readonly ms: number }
  | { readonly kind: 'retry'; readonly key: string }
  | { readonly kind: 'take' }
  | { readonly kind: 'done'; readonly index: number }
  | { readonly kind: 'advance'; readonly ms: number };

const key = fc.constantFrom('a', 'b', 'c', 'd');
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), key, priority: fc.constantFrom(-100, 0) }),
  fc.record({
    kind: fc.constant('add-after' as const),
    key,
    ms: fc.integer({ min: 0, max: 5_000 }),
  }),
  fc.record({ kind: fc.constant('retry' as const), key }),
  fc.record({ kind: fc.constant('take' as const) }),
  fc.record({ kind: fc.constant('done' as const), index: fc.nat(3) }),
  fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 3_000 }) }),
);

test('Whatever happens, no key is in work twice and none that was added is lost', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { clock, queue } = openQueue();
      const inWork = new Set<string>();
      /** Added since their last take began: they must come (again). */
      const owed = new Set<string>();
      for (const action of steps) await perform(action, { clock, queue, inWork, owed });
      for (const taken of inWork) queue.done(taken);
      clock.advance(3_600_000);
      for (const seen of await drain(queue)) owed.delete(seen);
      assert.deepEqual([...owed], []);
      assert.ok(queue.isIdle);
      assert.equal(clock.pendingTimers, 0);
    }),
    { numRuns: 300 },
  );
});

interface Model {
  readonly clock: FakeClock;
  readonly queue: WorkQueue;
  readonly inWork: Set<string>;
  readonly owed: Set<string>;
}

async function perform(action: Step, model: Model): Promise<void> {
  const { clock, queue, inWork, owed } = model;
  switch (action.kind) {
    case 'add':
      queue.add(action.key, { priority: action.priority });
      owed.add(action.key);
      return;
    case 'add-after':
      queue.addAfter(action.key, action.ms);
      owed.add(action.key);
      return;
    case 'retry':
      queue.addRateLimited(action.key);
      owed.add(action.key);
      return;
    case 'take': {
      if (queue.depth === 0) return;
      const taken = await queue.take();
      assert.ok(taken !== undefined && !inWork.has(taken), 'a key was in work twice');
      inWork.add(taken);
      owed.delete(taken);
      return;
    }
    case 'done': {
      const taken = [...inWork][action.index];
      if (taken === undefined) return;
      inWork.delete(taken);
      queue.done(taken);
      return;
    }
    case 'advance':
      clock.advance(action.ms);
      return;
  }
  action satisfies never;
}
