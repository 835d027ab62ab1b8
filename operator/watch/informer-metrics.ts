// The fairlead_informer_* metrics: whether the local copies are alive, and whether they can be trusted.

import type { Registry } from 'prom-client';

import type { InformerMetrics } from './informer.ts';
import { makeCounter, makeGauge } from './metric-makers.ts';
import type { RelistReason } from './watch-policy.ts';

const LABELS = { labels: ['resource'] };
const REASONS: readonly RelistReason[] = [
  'first',
  'expired',
  'empty-watches',
  'malformed',
  'safety',
];

export function createInformerMetrics(registry: Registry): (resource: string) => InformerMetrics {
  const metrics = makeMetrics(registry);
  return (resource) => {
    metrics.watches.inc({ resource }, 0);
    metrics.drift.inc({ resource }, 0);
    for (const reason of REASONS) metrics.relists.inc({ resource, reason }, 0);
    return {
      contact: (wallMs) => metrics.contact.set({ resource }, wallMs / 1000),
      size: (count) => metrics.objects.set({ resource }, count),
      watchStarted: () => metrics.watches.inc({ resource }),
      relist: (reason) => metrics.relists.inc({ resource, reason }),
      drift: (differences) => metrics.drift.inc({ resource }, differences),
    };
  };
}

function makeMetrics(registry: Registry) {
  return {
    contact: makeGauge(registry, {
      name: 'fairlead_informer_last_contact_timestamp_seconds',
      help: 'When a list, event or bookmark of this kind last arrived.',
      ...LABELS,
    }),
    objects: makeGauge(registry, {
      name: 'fairlead_informer_objects',
      help: 'Objects of this kind in the local copy.',
      ...LABELS,
    }),
    watches: makeCounter(registry, {
      name: 'fairlead_informer_watches_total',
      help: 'Watches opened.',
      ...LABELS,
    }),
    relists: makeCounter(registry, {
      name: 'fairlead_informer_relists_total',
      help: 'Full lists, by what made them necessary.',
      labels: ['resource', 'reason'],
    }),
    drift: makeCounter(registry, {
      name: 'fairlead_informer_relist_drift_total',
      help: 'Differences found by a safety relist: events that a healthy watch lost.',
      ...LABELS,
    }),
  };
}
