// The gates: what must hold before a release. Ratios to targets of the same run, because absolute
// times depend on the machine; only memory is absolute. Pure.

import type { TargetName } from './bench-options.ts';
import type { MetricId, Results } from './results.ts';

export interface GateVerdict {
  readonly title: string;
  readonly limit: number;
  readonly value: number | undefined;
  /** unknown: a figure is missing (`--only`), which is neither. */
  readonly verdict: 'pass' | 'fail' | 'unknown';
}

interface Gate {
  readonly title: string;
  readonly metric: MetricId;
  /** The sidecar's own figure when absent. */
  readonly relativeTo?: TargetName;
  readonly limit: number;
}

const GATES: readonly Gate[] = [
  {
    title: 'CPU per tools/call <= 1.6 x pass-through',
    metric: 'cpu32',
    relativeTo: 'pass-through',
    limit: 1.6,
  },
  {
    title: 'CPU per tools/call <= 1/6 of the SDK v1 proxy',
    metric: 'cpu32',
    relativeTo: 'sdk-v1-proxy',
    limit: 1 / 6,
  },
  { title: 'idle memory <= 100 MiB', metric: 'idleMib', limit: 100 },
  {
    title: 'start to first call <= 3 x pass-through',
    metric: 'startMs',
    relativeTo: 'pass-through',
    limit: 3,
  },
  {
    title: 'start to first call <= 3 x, dead servers in the config',
    metric: 'startDeadMs',
    relativeTo: 'pass-through',
    limit: 3,
  },
];

export function judgeGates(results: Results): readonly GateVerdict[] {
  return GATES.map(({ title, metric, relativeTo, limit }) => {
    const value =
      relativeTo === undefined
        ? results.figure('sidecar', metric)
        : results.ratio(metric, relativeTo);
    const verdict = value === undefined ? 'unknown' : value <= limit ? 'pass' : 'fail';
    return { title, limit, value, verdict };
  });
}
