// The text of /metrics. Metrics register here as they would with prom-client's registry; the
// library itself is loaded at the first scrape, since it costs more to load than the rest of the
// sidecar's start and a desk never scrapes.

import type { Registry } from 'prom-client';

import type { RenderedMetrics } from '#core/telemetry/health-server.ts';
import type { MetricRegistry } from '#core/telemetry/series.ts';

export class MetricsPage implements MetricRegistry {
  readonly #metrics: Parameters<MetricRegistry['registerMetric']>[0][] = [];
  #registry: Promise<Registry> | undefined;

  registerMetric: MetricRegistry['registerMetric'] = (metric) => {
    if (this.#registry !== undefined)
      throw new TypeError('metrics are registered before the first scrape');
    this.#metrics.push(metric);
  };

  async render(): Promise<RenderedMetrics> {
    this.#registry ??= this.#load();
    const registry = await this.#registry;
    return { contentType: registry.contentType, text: await registry.metrics() };
  }

  async #load(): Promise<Registry> {
    const { Registry } = await import('prom-client');
    const registry = new Registry();
    for (const metric of this.#metrics) registry.registerMetric(metric);
    return registry;
  }
}
