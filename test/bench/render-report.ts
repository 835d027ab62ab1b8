// What a run prints: a table of figures, the sidecar's ratios to each other target, the gates; or
// the same as one JSON document. Pure.

import { TARGET_NAMES, type TargetName } from './bench-options.ts';
import type { GateVerdict } from './gates.ts';
import { METRIC_IDS, METRICS, type MetricId, type Results } from './results.ts';

export interface ReportInput {
  readonly title: string;
  readonly results: Results;
  readonly gates: readonly GateVerdict[];
}

const PEERS = TARGET_NAMES.filter((name) => name !== 'sidecar');
const HEAD = [...TARGET_NAMES, '|', ...PEERS.map((name) => `/ ${name}`)];
const LABEL_HEAD = "(right: the sidecar's ratios)";
const LABEL_WIDTH = Math.max(
  LABEL_HEAD.length,
  ...METRIC_IDS.map((id) => METRICS[id].label.length),
);

export function renderTable({ title, results, gates }: ReportInput): string {
  const rows = METRIC_IDS.map((id) =>
    row(METRICS[id].label, [...figureCells(results, id), '|', ...ratioCells(results, id)]),
  );
  const gateLines = gates.map(
    ({ title: gate, value, verdict }) =>
      `  ${VERDICT_WORDS[verdict].padEnd(10)}  ${gate}: ${formatGateValue(value)}`,
  );
  return [title, '', row(LABEL_HEAD, HEAD), ...rows, '', 'Gates', ...gateLines, ''].join('\n');
}

function row(label: string, cells: readonly string[]): string {
  const padded = cells.map((cell, index) =>
    cell.padStart(cell === '|' ? 1 : Math.max((HEAD[index] ?? '').length, 8)),
  );
  return `${label.padEnd(LABEL_WIDTH)}  ${padded.join('  ')}`;
}

const VERDICT_WORDS = { pass: 'pass', fail: 'FAIL', unknown: 'not judged' } as const;

function formatGateValue(value: number | undefined): string {
  if (value === undefined) return 'a figure is missing';
  return value < 1 ? `1/${(1 / value).toFixed(1)}` : value.toFixed(value < 10 ? 2 : 0);
}

function figureCells(results: Results, id: MetricId): string[] {
  return TARGET_NAMES.map((name) => results.figure(name, id)?.toFixed(METRICS[id].digits) ?? '-');
}

function ratioCells(results: Results, id: MetricId): string[] {
  return PEERS.map((name) => {
    const ratio = results.ratio(id, name);
    return ratio === undefined ? '-' : `${ratio.toFixed(ratio < 1 ? 3 : 2)} x`;
  });
}

export function renderJson({ title, results, gates }: ReportInput): string {
  const figures = Object.fromEntries(METRIC_IDS.map((id) => [id, metricJson(results, id)]));
  return `${JSON.stringify({ title, figures, gates }, null, 2)}\n`;
}

function metricJson(results: Results, id: MetricId): Record<string, unknown> {
  const perTarget = (name: TargetName): [string, unknown] => [
    name,
    { figure: results.figure(name, id) ?? null, samples: results.samples(name, id) },
  ];
  const ratios = PEERS.map((name): [string, unknown] => [name, results.ratio(id, name) ?? null]);
  return {
    label: METRICS[id].label,
    targets: Object.fromEntries(TARGET_NAMES.map(perTarget)),
    sidecarRatioTo: Object.fromEntries(ratios),
  };
}
