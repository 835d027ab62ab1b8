// The workqueue_* metrics, under client-go's names.

import type { Registry } from 'prom-client';

import { makeCollectedGauge, makeCounter, makeGauge, makeHistogram } from './metric-makers.ts';
import type { WorkQueue, WorkQueueMetrics } from './work-queue.ts';

const BUCKETS = Array.from({ length: 12 }, (_, power) => Number(`1e${String(power - 8)}`));
const LABELS = { labels: ['name'] };

export interface QueueMetrics {
  queue(name: string): WorkQueueMetrics;
  /** Also reports work that has not ended yet, read when metrics are collected. */
  observeQueue(queue: WorkQueue): void;
}

export function createQueueMetrics(registry: Registry): QueueMetrics {
  const metrics = makeMetrics(registry);
  const observed = new Set<WorkQueue>();
  observeRunningWork(registry, observed);
  return {
    observeQueue: (queue) => observed.add(queue),
    queue: (name) => {
      metrics.depth.set({ name }, 0);
      metrics.adds.inc({ name }, 0);
      metrics.retries.inc({ name }, 0);
      return {
        added: () => metrics.adds.inc({ name }),
        depth: (keys) => metrics.depth.set({ name }, keys),
        waited: (seconds) => metrics.waited.observe({ name }, seconds),
        worked: (seconds) => metrics.worked.observe({ name }, seconds),
        retried: () => metrics.retries.inc({ name }),
      };
    },
  };
}

function makeMetrics(registry: Registry) {
  return {
    depth: makeGauge(registry, {
      name: 'workqueue_depth',
      help: 'Keys that are ready to be processed.',
      ...LABELS,
    }),
    adds: makeCounter(registry, {
      name: 'workqueue_adds_total',
      help: 'Keys added to the queue.',
      ...LABELS,
    }),
    retries: makeCounter(registry, {
      name: 'workqueue_retries_total',
      help: 'Keys added again after a failure.',
      ...LABELS,
    }),
    waited: makeHistogram(registry, {
      name: 'workqueue_queue_duration_seconds',
      help: 'Seconds that a key waits in the queue before it is processed.',
      buckets: BUCKETS,
      ...LABELS,
    }),
    worked: makeHistogram(registry, {
      name: 'workqueue_work_duration_seconds',
      help: 'Seconds that processing a key takes.',
      buckets: BUCKETS,
      ...LABELS,
    }),
  };
}

function observeRunningWork(registry: Registry, observed: ReadonlySet<WorkQueue>): void {
  makeCollectedGauge(registry, {
    name: 'workqueue_unfinished_work_seconds',
    help: 'Seconds of work that is in progress and not yet in work_duration.',
    read: () => [...observed].map((queue) => [queue.name, queue.unfinishedWorkSeconds()] as const),
    ...LABELS,
  });
  makeCollectedGauge(registry, {
    name: 'workqueue_longest_running_processor_seconds',
    help: 'Seconds for which the longest running key has been processed.',
    read: () => [...observed].map((queue) => [queue.name, queue.longestRunningSeconds()] as const),
    ...LABELS,
  });
}
