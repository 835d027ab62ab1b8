// Counters and histograms for the path of a call: increments on plain numbers, no label hashing,
// no allocation; prom-client sees them only when it is scraped. Keys (server aliases, say) are
// bounded and go when their server goes, so that neither churn nor hostile names grow a scrape.

import type { Registry } from 'prom-client';

export const OTHER_KEY = 'other';

export interface Sample {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** What a registry of prom-client asks of a metric when it is scraped. */
export interface ScrapedMetric {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** `le` of histogram buckets aside. */
  readonly labelNames: readonly string[];
  readonly samples: () => readonly Sample[];
}

/** The one thing that is asked of a registry until it is scraped; prom-client itself can be loaded then. */
export type MetricRegistry = Pick<Registry, 'registerMetric'>;

export function registerScraped(registry: MetricRegistry, metric: ScrapedMetric): void {
  const { name, help, type, labelNames } = metric;
  const scraped = {
    name,
    help,
    type,
    labelNames,
    aggregator: 'sum',
    collect: () => {},
    reset: () => {},
    get: async () => ({ name, help, type, values: metric.samples(), aggregator: 'sum' }),
  };
  // prom-client's type wants its own classes; its registry uses these members only.
  registry.registerMetric(scraped as unknown as Parameters<Registry['registerMetric']>[0]);
}

/** Upper bounds in seconds: local calls take milliseconds, agents' tools up to minutes. */
export const DURATION_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
] as const;

export class DurationHistogram {
  readonly #counts = new Float64Array(DURATION_BUCKETS.length + 1);
  #sum = 0;
  #count = 0;

  observeMs(ms: number): void {
    const seconds = ms > 0 ? ms / 1000 : 0;
    let index = 0;
    while (index < DURATION_BUCKETS.length && seconds > (DURATION_BUCKETS[index] ?? Infinity))
      index += 1;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#sum += seconds;
    this.#count += 1;
  }

  samples(name: string, labels: Readonly<Record<string, string>>): Sample[] {
    const samples: Sample[] = [];
    let cumulative = 0;
    for (const [index, bound] of DURATION_BUCKETS.entries()) {
      cumulative += this.#counts[index] ?? 0;
      samples.push({
        metricName: `${name}_bucket`,
        labels: { ...labels, le: bound },
        value: cumulative,
      });
    }
    samples.push({
      metricName: `${name}_bucket`,
      labels: { ...labels, le: '+Inf' },
      value: this.#count,
    });
    samples.push({ metricName: `${name}_sum`, labels, value: this.#sum });
    samples.push({ metricName: `${name}_count`, labels, value: this.#count });
    return samples;
  }
}

/**
 * Series by key. Only announced keys get a series of their own, at most `maxKeys`; all others
 * share `other`. A key that is no longer announced takes its series along, and a late call of it
 * does not bring the series back.
 */
export class SeriesFamily<Series> {
  readonly #make: () => Series;
  readonly #maxKeys: number;
  readonly #byKey = new Map<string, Series>();
  #other: Series | undefined;

  constructor(maxKeys: number, make: () => Series) {
    this.#maxKeys = maxKeys;
    this.#make = make;
  }

  announce(keys: readonly string[]): void {
    const kept = new Set(keys.slice(0, this.#maxKeys));
    for (const key of this.#byKey.keys()) {
      if (!kept.has(key)) this.#byKey.delete(key);
    }
    for (const key of kept) {
      if (!this.#byKey.has(key)) this.#byKey.set(key, this.#make());
    }
  }

  get(key: string): Series {
    const series = this.#byKey.get(key);
    if (series !== undefined) return series;
    this.#other ??= this.#make();
    return this.#other;
  }

  entries(): readonly (readonly [string, Series])[] {
    return this.#other === undefined
      ? [...this.#byKey]
      : [...this.#byKey, [OTHER_KEY, this.#other]];
  }
}
