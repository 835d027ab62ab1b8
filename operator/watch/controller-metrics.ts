// The controller_runtime_* metrics of reconcile loops, with controller-runtime's buckets.

import type { Registry } from 'prom-client';

import type { ControllerMetrics } from './controller-loop.ts';
import { makeCounter, makeGauge, makeHistogram } from './metric-makers.ts';

// biome-ignore format: one table
const BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
  1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
const LABELS = { labels: ['controller'] };
const RESULTS = ['success', 'error', 'requeue', 'requeue_after'];

export function createControllerMetrics(registry: Registry): (name: string) => ControllerMetrics {
  const runs = makeRunMetrics(registry);
  const failures = makeFailureMetrics(registry);
  return (controller) => {
    for (const result of RESULTS) runs.total.inc({ controller, result }, 0);
    for (const failure of Object.values(failures)) failure.inc({ controller }, 0);
    runs.active.set({ controller }, 0);
    return {
      finished: (result, seconds) => {
        runs.total.inc({ controller, result });
        runs.time.observe({ controller }, seconds);
      },
      failed: (kind) => failures[kind].inc({ controller }),
      activeWorkers: (workers) => runs.active.set({ controller }, workers),
      maxConcurrent: (workers) => runs.max.set({ controller }, workers),
    };
  };
}

function makeRunMetrics(registry: Registry) {
  return {
    total: makeCounter(registry, {
      name: 'controller_runtime_reconcile_total',
      help: 'Reconciliations, by how they ended.',
      labels: ['controller', 'result'],
    }),
    time: makeHistogram(registry, {
      name: 'controller_runtime_reconcile_time_seconds',
      help: 'Seconds that a reconciliation takes.',
      buckets: BUCKETS,
      ...LABELS,
    }),
    active: makeGauge(registry, {
      name: 'controller_runtime_active_workers',
      help: 'Workers that are reconciling now.',
      ...LABELS,
    }),
    max: makeGauge(registry, {
      name: 'controller_runtime_max_concurrent_reconciles',
      help: 'Keys that may be reconciled at the same time.',
      ...LABELS,
    }),
  };
}

function makeFailureMetrics(registry: Registry) {
  return {
    error: makeCounter(registry, {
      name: 'controller_runtime_reconcile_errors_total',
      help: 'Reconciliations that failed.',
      ...LABELS,
    }),
    terminal: makeCounter(registry, {
      name: 'controller_runtime_terminal_reconcile_errors_total',
      help: 'Reconciliations that failed and are not tried again until something changes.',
      ...LABELS,
    }),
    panic: makeCounter(registry, {
      name: 'controller_runtime_reconcile_panics_total',
      help: 'Reconciliations that ended on a bug.',
      ...LABELS,
    }),
    timeout: makeCounter(registry, {
      name: 'controller_runtime_reconcile_timeouts_total',
      help: 'Reconciliations that ran out of time.',
      ...LABELS,
    }),
  };
}
