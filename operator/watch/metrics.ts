// The metrics of the watching and reconciling parts, under controller-runtime's names and with its
// buckets, so that dashboards made for other operators work here. Made on a Registry that the
// composition root passes in; labels are names of controllers, queues and kinds, never of objects.

import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';
import type { EventMetrics } from '../kube/events.ts';
import type { KubeClientMetrics } from '../kube/kube-client.ts';
import type { ControllerMetrics } from './controller-loop.ts';
import type { InformerMetrics } from './informer.ts';
import type { LeaseMetrics } from './leader-lease.ts';
import type { RelistReason } from './watch-policy.ts';
import type { WorkQueue, WorkQueueMetrics } from './work-queue.ts';

const RECONCILE_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
  1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
const QUEUE_BUCKETS = Array.from({ length: 12 }, (_, power) => Number(`1e${String(power - 8)}`));
const RELIST_REASONS: readonly RelistReason[] = [
  'first',
  'expired',
  'empty-watches',
  'malformed',
  'safety',
];

export interface OperatorMetrics {
  readonly client: KubeClientMetrics;
  readonly events: EventMetrics;
  informer(resource: string): InformerMetrics;
  queue(name: string): WorkQueueMetrics;
  /** Also reports work that has not ended yet, read when metrics are collected. */
  observeQueue(queue: WorkQueue): void;
  controller(name: string): ControllerMetrics;
  lease(name: string): LeaseMetrics;
}

export function createOperatorMetrics(registry: Registry): OperatorMetrics {
  const restRequests = counter(
    registry,
    'rest_client_requests_total',
    'Number of HTTP requests, partitioned by status code, method and host.',
    ['code', 'method', 'host'],
  );
  const events = counter(
    registry,
    'fairlead_events_total',
    'Kubernetes Events written, suppressed as repeats, or dropped.',
    ['outcome'],
  );
  for (const outcome of ['written', 'suppressed', 'dropped']) events.inc({ outcome }, 0);
  const master = gauge(
    registry,
    'leader_election_master_status',
    'Whether this process holds the leader lease: 1 yes, 0 no.',
    ['name'],
  );
  const queues = createQueueMetrics(registry);
  return {
    client: { request: (labels) => restRequests.inc({ ...labels }) },
    events: { event: (outcome) => events.inc({ outcome }) },
    informer: createInformerMetrics(registry),
    queue: queues.queue,
    observeQueue: queues.observeQueue,
    controller: createControllerMetrics(registry),
    lease: (name) => ({ leading: (isLeader) => master.set({ name }, isLeader ? 1 : 0) }),
  };
}

function createInformerMetrics(registry: Registry): (resource: string) => InformerMetrics {
  const labelNames = ['resource'];
  const contact = gauge(
    registry,
    'fairlead_informer_last_contact_timestamp_seconds',
    'When a list, event or bookmark of this kind last arrived.',
    labelNames,
  );
  const objects = gauge(
    registry,
    'fairlead_informer_objects',
    'Objects of this kind in the local copy.',
    labelNames,
  );
  const watches = counter(
    registry,
    'fairlead_informer_watches_total',
    'Watches opened.',
    labelNames,
  );
  const relists = counter(
    registry,
    'fairlead_informer_relists_total',
    'Full lists, by what made them necessary.',
    ['resource', 'reason'],
  );
  const drift = counter(
    registry,
    'fairlead_informer_relist_drift_total',
    'Differences found by a safety relist: events that a healthy watch lost.',
    labelNames,
  );
  return (resource) => {
    watches.inc({ resource }, 0);
    drift.inc({ resource }, 0);
    for (const reason of RELIST_REASONS) relists.inc({ resource, reason }, 0);
    return {
      contact: (wallMs) => contact.set({ resource }, wallMs / 1000),
      size: (count) => objects.set({ resource }, count),
      watchStarted: () => watches.inc({ resource }),
      relist: (reason) => relists.inc({ resource, reason }),
      drift: (differences) => drift.inc({ resource }, differences),
    };
  };
}

function createQueueMetrics(registry: Registry): Pick<OperatorMetrics, 'queue' | 'observeQueue'> {
  const labelNames = ['name'];
  const depth = gauge(registry, 'workqueue_depth', 'Current depth of workqueue.', labelNames);
  const adds = counter(
    registry,
    'workqueue_adds_total',
    'Total number of adds handled by workqueue.',
    labelNames,
  );
  const retries = counter(
    registry,
    'workqueue_retries_total',
    'Total number of retries handled by workqueue.',
    labelNames,
  );
  const waited = histogram(
    registry,
    'workqueue_queue_duration_seconds',
    'How long in seconds an item stays in workqueue before being requested.',
    QUEUE_BUCKETS,
    labelNames,
  );
  const worked = histogram(
    registry,
    'workqueue_work_duration_seconds',
    'How long in seconds processing an item from workqueue takes.',
    QUEUE_BUCKETS,
    labelNames,
  );
  const observed = new Set<WorkQueue>();
  collectedGauge(
    registry,
    'workqueue_unfinished_work_seconds',
    'Seconds of work in progress that work_duration has not observed yet.',
    (set) => {
      for (const queue of observed) set(queue.name, queue.unfinishedWorkSeconds());
    },
  );
  collectedGauge(
    registry,
    'workqueue_longest_running_processor_seconds',
    'How many seconds the longest running processor has been running.',
    (set) => {
      for (const queue of observed) set(queue.name, queue.longestRunningSeconds());
    },
  );
  return {
    observeQueue: (queue) => observed.add(queue),
    queue: (name) => {
      depth.set({ name }, 0);
      adds.inc({ name }, 0);
      retries.inc({ name }, 0);
      return {
        added: () => adds.inc({ name }),
        depth: (keys) => depth.set({ name }, keys),
        waited: (seconds) => waited.observe({ name }, seconds),
        worked: (seconds) => worked.observe({ name }, seconds),
        retried: () => retries.inc({ name }),
      };
    },
  };
}

function createControllerMetrics(registry: Registry): (controller: string) => ControllerMetrics {
  const labelNames = ['controller'];
  const total = counter(
    registry,
    'controller_runtime_reconcile_total',
    'Total number of reconciliations per controller.',
    ['controller', 'result'],
  );
  const failures = {
    error: counter(
      registry,
      'controller_runtime_reconcile_errors_total',
      'Total number of reconciliation errors per controller.',
      labelNames,
    ),
    terminal: counter(
      registry,
      'controller_runtime_terminal_reconcile_errors_total',
      'Total number of terminal reconciliation errors per controller.',
      labelNames,
    ),
    panic: counter(
      registry,
      'controller_runtime_reconcile_panics_total',
      'Total number of reconciliations that ended on a bug.',
      labelNames,
    ),
    timeout: counter(
      registry,
      'controller_runtime_reconcile_timeouts_total',
      'Total number of reconciliations that ran out of time.',
      labelNames,
    ),
  };
  const time = histogram(
    registry,
    'controller_runtime_reconcile_time_seconds',
    'Length of time per reconciliation per controller.',
    RECONCILE_BUCKETS,
    labelNames,
  );
  const active = gauge(
    registry,
    'controller_runtime_active_workers',
    'Number of currently used workers per controller.',
    labelNames,
  );
  const max = gauge(
    registry,
    'controller_runtime_max_concurrent_reconciles',
    'Maximum number of concurrent reconciles per controller.',
    labelNames,
  );
  return (controller) => {
    for (const result of ['success', 'error', 'requeue', 'requeue_after'])
      total.inc({ controller, result }, 0);
    for (const failure of Object.values(failures)) failure.inc({ controller }, 0);
    active.set({ controller }, 0);
    return {
      finished: (result, seconds) => {
        total.inc({ controller, result });
        time.observe({ controller }, seconds);
      },
      failed: (kind) => failures[kind].inc({ controller }),
      activeWorkers: (workers) => active.set({ controller }, workers),
      maxConcurrent: (workers) => max.set({ controller }, workers),
    };
  };
}

function counter(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly string[],
): Counter {
  return new Counter({ name, help, labelNames: [...labelNames], registers: [registry] });
}

function gauge(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly string[],
): Gauge {
  return new Gauge({ name, help, labelNames: [...labelNames], registers: [registry] });
}

function collectedGauge(
  registry: Registry,
  name: string,
  help: string,
  read: (set: (label: string, value: number) => void) => void,
): void {
  new Gauge({
    name,
    help,
    labelNames: ['name'],
    registers: [registry],
    collect() {
      read((label, value) => this.set({ name: label }, value));
    },
  });
}

function histogram(
  registry: Registry,
  name: string,
  help: string,
  buckets: number[],
  labelNames: readonly string[],
): Histogram {
  return new Histogram({ name, help, buckets, labelNames: [...labelNames], registers: [registry] });
}
