import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Registry } from 'prom-client';

import { createOperatorMetrics } from '#operator/watch/metrics.ts';
import { WorkQueue } from '#operator/watch/work-queue.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

const NAMES = [
  'controller_runtime_active_workers',
  'controller_runtime_max_concurrent_reconciles',
  'controller_runtime_reconcile_errors_total',
  'controller_runtime_reconcile_panics_total',
  'controller_runtime_reconcile_time_seconds',
  'controller_runtime_reconcile_timeouts_total',
  'controller_runtime_reconcile_total',
  'controller_runtime_terminal_reconcile_errors_total',
  'fairlead_events_total',
  'fairlead_informer_last_contact_timestamp_seconds',
  'fairlead_informer_objects',
  'fairlead_informer_relist_drift_total',
  'fairlead_informer_relists_total',
  'fairlead_informer_watches_total',
  'leader_election_master_status',
  'rest_client_requests_total',
  'workqueue_adds_total',
  'workqueue_depth',
  'workqueue_longest_running_processor_seconds',
  'workqueue_queue_duration_seconds',
  'workqueue_retries_total',
  'workqueue_unfinished_work_seconds',
  'workqueue_work_duration_seconds',
];

test('The metrics have the names that dashboards for other operators look for', () => {
  const registry = new Registry();
  createOperatorMetrics(registry);
  assert.deepEqual(
    registry
      .getMetricsAsArray()
      .map((metric) => metric.name)
      .sort(),
    NAMES,
  );
});

test('Counters are there with 0 before anything has happened', async () => {
  const registry = new Registry();
  const metrics = createOperatorMetrics(registry);
  metrics.controller('mcp-binding');
  metrics.queue('mcp-binding');
  metrics.informer('mcpbindings');
  metrics.lease('fairlead-operator').leading(false);
  const text = await registry.metrics();
  for (const line of [
    'controller_runtime_reconcile_total{controller="mcp-binding",result="error"} 0',
    'workqueue_retries_total{name="mcp-binding"} 0',
    'fairlead_informer_relists_total{resource="mcpbindings",reason="expired"} 0',
    'fairlead_events_total{outcome="dropped"} 0',
    'leader_election_master_status{name="fairlead-operator"} 0',
  ]) {
    assert.ok(text.includes(`${line}\n`), line);
  }
});

test('Work that has not ended is read when metrics are collected', async () => {
  const registry = new Registry();
  const metrics = createOperatorMetrics(registry);
  const clock = new FakeClock();
  const queue = new WorkQueue({ name: 'q', clock, metrics: metrics.queue('q') });
  metrics.observeQueue(queue);
  queue.add('a');
  await queue.take();
  clock.advance(4_000);
  const text = await registry.metrics();
  assert.match(text, /workqueue_unfinished_work_seconds\{name="q"\} 4\n/);
  assert.match(text, /workqueue_longest_running_processor_seconds\{name="q"\} 4\n/);
  queue.done('a');
  queue.shutDown();
});
