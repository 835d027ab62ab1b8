// The metrics of the watching and reconciling parts, under controller-runtime's names, so that dashboards
// made for other operators work here. Made on a Registry that the composition root passes in; labels are
// names of controllers, queues and kinds, never of objects.

import type { Registry } from 'prom-client';

import type { EventMetrics } from '#operator/kube/events.ts';
import type { KubeClientMetrics } from '#operator/kube/kube-transport.ts';
import type { ControllerMetrics } from './controller-loop.ts';
import { createControllerMetrics } from './controller-metrics.ts';
import type { InformerMetrics } from './informer.ts';
import { createInformerMetrics } from './informer-metrics.ts';
import type { LeaseMetrics } from './leader-lease.ts';
import { makeCounter, makeGauge } from './metric-makers.ts';
import { createQueueMetrics } from './queue-metrics.ts';
import type { QueueMetrics } from './queue-metrics.ts';

export interface OperatorMetrics extends QueueMetrics {
  readonly client: KubeClientMetrics;
  readonly events: EventMetrics;
  informer(resource: string): InformerMetrics;
  controller(name: string): ControllerMetrics;
  lease(name: string): LeaseMetrics;
}

export function createOperatorMetrics(registry: Registry): OperatorMetrics {
  const requests = makeCounter(registry, {
    name: 'rest_client_requests_total',
    help: 'Requests to the API server, by status code, method and host.',
    labels: ['code', 'method', 'host'],
  });
  const leading = makeGauge(registry, {
    name: 'leader_election_master_status',
    help: 'Whether this process holds the leader lease: 1 yes, 0 no.',
    labels: ['name'],
  });
  return {
    ...createQueueMetrics(registry),
    client: { request: (labels) => requests.inc({ ...labels }) },
    events: createEventMetrics(registry),
    informer: createInformerMetrics(registry),
    controller: createControllerMetrics(registry),
    lease: (name) => ({ leading: (isLeader) => leading.set({ name }, isLeader ? 1 : 0) }),
  };
}

function createEventMetrics(registry: Registry): EventMetrics {
  const events = makeCounter(registry, {
    name: 'fairlead_events_total',
    help: 'Kubernetes Events written, suppressed as repeats, or dropped.',
    labels: ['outcome'],
  });
  for (const outcome of ['written', 'suppressed', 'dropped']) events.inc({ outcome }, 0);
  return { event: (outcome) => events.inc({ outcome }) };
}
