import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createLogger } from '#core/telemetry/log.ts';
import { ControllerLoop, TerminalError } from '#operator/watch/controller-loop.ts';
import type { Reconcile } from '#operator/watch/controller-loop.ts';
import { WorkQueue } from '#operator/watch/work-queue.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

interface Scene {
  readonly clock: FakeClock;
  readonly queue: WorkQueue;
  readonly loop: ControllerLoop;
  readonly logged: Record<string, unknown>[];
  readonly events: string[];
}

function openScene(
  reconcile: Reconcile,
  options: { concurrency?: number; timeoutMs?: number } = {},
): Scene {
  const clock = new FakeClock();
  const logged: Record<string, unknown>[] = [];
  const log = createLogger({
    name: 'test',
    level: 'debug',
    destination: { write: (line: string) => void logged.push(JSON.parse(line)) },
  });
  const events: string[] = [];
  const queue = new WorkQueue({ name: 'test', clock });
  const loop = new ControllerLoop({
    name: 'test',
    queue,
    reconcile,
    clock,
    log,
    metrics: {
      finished: (outcome) => void events.push(outcome),
      failed: (kind) => void events.push(`failed ${kind}`),
      activeWorkers: () => undefined,
      maxConcurrent: () => undefined,
    },
    ...options,
  });
  loop.start();
  return { clock, queue, loop, logged, events };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test('A good run is forgotten, and comes again only when it asked for it', async () => {
  const runs: string[] = [];
  const scene = openScene(async (key) => {
    runs.push(key);
    return key === 'again' ? { requeueAfterMs: 60_000 } : undefined;
  });
  scene.queue.add('once');
  scene.queue.add('again');
  await settle();
  await scene.clock.advanceAsync(60_000);
  assert.deepEqual(runs, ['once', 'again', 'again']);
  assert.deepEqual(scene.events, ['success', 'requeue_after', 'requeue_after']);
  await scene.loop.stop();
});

test('A failed run is tried again later, a terminal one is not', async () => {
  const runs: string[] = [];
  const scene = openScene(async (key) => {
    runs.push(key);
    if (key === 'hopeless') throw new TerminalError('the spec is wrong');
    if (runs.filter((run) => run === key).length < 3) throw new Error('not yet');
    return undefined;
  });
  scene.queue.add('hopeless');
  scene.queue.add('flaky');
  await settle();
  assert.deepEqual(runs, ['hopeless', 'flaky']);
  await scene.clock.advanceAsync(500);
  await scene.clock.advanceAsync(1_000);
  assert.deepEqual(runs, ['hopeless', 'flaky', 'flaky', 'flaky']);
  await scene.clock.advanceAsync(3_600_000);
  assert.equal(runs.length, 4);
  assert.equal(scene.queue.failuresOf('flaky'), 0);
  assert.ok(scene.events.includes('failed terminal'));
  await scene.loop.stop();
});

test('A bug in a reconcile function is counted as such and ends nothing', async () => {
  const scene = openScene(async (key) => {
    if (key === 'bug') throw new TypeError('undefined is not a function');
    return undefined;
  });
  scene.queue.add('bug');
  scene.queue.add('fine');
  await settle();
  assert.deepEqual(scene.events, ['failed error', 'failed panic', 'error', 'success']);
  await scene.loop.stop();
});

test('A run that takes too long is told so by its signal, and tried again', async () => {
  const scene = openScene(
    (_key, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      ),
    { timeoutMs: 1_000 },
  );
  scene.queue.add('slow');
  await settle();
  await scene.clock.advanceAsync(1_000);
  assert.deepEqual(scene.events, ['failed error', 'failed timeout', 'error']);
  assert.equal(scene.queue.failuresOf('slow'), 1);
  await scene.loop.stop();
});

test('Several keys are reconciled at the same time, never one key twice', async () => {
  const running = new Set<string>();
  const finish: (() => void)[] = [];
  let most = 0;
  const scene = openScene(
    async (key) => {
      assert.ok(!running.has(key));
      running.add(key);
      most = Math.max(most, running.size);
      await new Promise<void>((resolve) => finish.push(resolve));
      running.delete(key);
      return undefined;
    },
    { concurrency: 3 },
  );
  for (const key of ['a', 'b', 'c', 'd']) scene.queue.add(key);
  await settle();
  for (const key of ['a', 'b', 'c', 'd']) scene.queue.add(key);
  await settle();
  assert.equal(most, 3);
  while (!scene.queue.isIdle) {
    finish.shift()?.();
    await settle();
  }
  assert.equal(most, 3);
  assert.equal(scene.events.length, 7, 'd had not begun when it was added again');
  await scene.loop.stop();
});

test('A stop waits for the runs that have begun, and aborts them when the grace is over', async () => {
  let aborted = false;
  const scene = openScene(
    (_key, { signal }) =>
      new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          aborted = true;
          resolve(undefined);
        }),
      ),
  );
  scene.queue.add('a');
  await settle();
  scene.queue.add('b');
  const stopped = scene.loop.stop(5_000);
  await scene.clock.advanceAsync(4_999);
  assert.equal(aborted, false);
  await scene.clock.advanceAsync(1);
  await stopped;
  assert.equal(aborted, true);
  assert.equal(scene.events.length, 1);
  assert.equal(scene.clock.pendingTimers, 0);
});

test('Each run has its own reconcileID in its log lines', async () => {
  const scene = openScene(async (_key, { log }) => {
    log.info('working');
    throw new Error('no');
  });
  scene.queue.add('a');
  await settle();
  await scene.clock.advanceAsync(500);
  const ids = scene.logged.map((line) => line['reconcileID']);
  assert.equal(ids.length, 4);
  assert.equal(ids[0], ids[1]);
  assert.notEqual(ids[0], ids[2]);
  assert.ok(scene.logged.every((line) => line['key'] === 'a' && line['controller'] === 'test'));
  await scene.loop.stop();
});
