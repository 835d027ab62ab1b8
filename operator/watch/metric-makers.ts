// Short forms for making prom-client metrics on a given registry.

import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';

export interface MetricText {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

export function makeCounter(registry: Registry, text: MetricText): Counter {
  const { name, help, labels } = text;
  return new Counter({ name, help, labelNames: [...labels], registers: [registry] });
}

export function makeGauge(registry: Registry, text: MetricText): Gauge {
  const { name, help, labels } = text;
  return new Gauge({ name, help, labelNames: [...labels], registers: [registry] });
}

export function makeHistogram(
  registry: Registry,
  text: MetricText & { readonly buckets: readonly number[] },
): Histogram {
  const { name, help, labels, buckets } = text;
  return new Histogram({
    name,
    help,
    labelNames: [...labels],
    buckets: [...buckets],
    registers: [registry],
  });
}

/** A gauge with one label that is read when metrics are collected. */
export function makeCollectedGauge(
  registry: Registry,
  text: MetricText & { readonly read: () => Iterable<readonly [label: string, value: number]> },
): void {
  const { name, help, labels, read } = text;
  const label = labels[0] ?? 'name';
  new Gauge({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      for (const [value, number] of read()) this.set({ [label]: value }, number);
    },
  });
}
