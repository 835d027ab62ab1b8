// The samples of a run, and what becomes of them: one figure per target and metric. Pure.

import type { TargetName } from './bench-options.ts';

/** The protocol's eras by mcpload's names: with sessions, or stateless. */
export type Era = 2025 | 2026;

export interface Metric {
  readonly label: string;
  readonly digits: number;
  readonly figure: 'median' | 'max';
}

export const METRICS = {
  cpu32: { label: 'CPU us/call, 32 callers', digits: 1, figure: 'median' },
  cpu32Modern: { label: 'CPU us/call, 32, 2026-07-28', digits: 1, figure: 'median' },
  p50At1: { label: 'p50 us, 1 caller', digits: 0, figure: 'median' },
  p99At1: { label: 'p99 us, 1 caller', digits: 0, figure: 'median' },
  p50At32: { label: 'p50 us, 32 callers', digits: 0, figure: 'median' },
  p99At32: { label: 'p99 us, 32 callers', digits: 0, figure: 'median' },
  rate32: { label: 'calls/s, 32 callers', digits: 0, figure: 'median' },
  idleMib: { label: 'memory MiB, idle', digits: 0, figure: 'median' },
  loadedMib: { label: 'memory MiB, loaded', digits: 0, figure: 'max' },
  startMs: { label: 'start to first call ms', digits: 0, figure: 'median' },
  /** Sidecar only; set against the start of the others, which know no other servers. */
  startDeadMs: { label: '  with dead servers, ms', digits: 0, figure: 'median' },
} as const satisfies Record<string, Metric>;
export type MetricId = keyof typeof METRICS;
export const METRIC_IDS = Object.keys(METRICS) as readonly MetricId[];

export class Results {
  readonly #samples = new Map<string, number[]>();

  add(target: TargetName, metric: MetricId, value: number): void {
    const key = `${target} ${metric}`;
    const samples = this.#samples.get(key);
    if (samples === undefined) this.#samples.set(key, [value]);
    else samples.push(value);
  }

  samples(target: TargetName, metric: MetricId): readonly number[] {
    return this.#samples.get(`${target} ${metric}`) ?? [];
  }

  /** Undefined when it was not measured. */
  figure(target: TargetName, metric: MetricId): number | undefined {
    const samples = this.samples(target, metric);
    if (samples.length === 0) return undefined;
    return METRICS[metric].figure === 'max' ? Math.max(...samples) : median(samples);
  }

  /** The sidecar's figure as a multiple of another target's. */
  ratio(metric: MetricId, to: TargetName): number | undefined {
    const own = this.figure('sidecar', metric);
    const other = this.figure(to, metric === 'startDeadMs' ? 'startMs' : metric);
    return own === undefined || other === undefined ? undefined : own / other;
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low = Number.NaN, high = Number.NaN] = [
    sorted[sorted.length % 2 === 0 ? middle - 1 : middle],
    sorted[middle],
  ];
  return (low + high) / 2;
}
