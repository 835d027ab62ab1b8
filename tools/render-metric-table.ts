// docs/metrics.md, from the metrics that the programs really register.

import { Registry } from 'prom-client';

import { systemClock } from '#core/clock.ts';
import { createSidecarMetrics } from '#core/telemetry/metrics.ts';
import { registerProcessMetrics } from '#core/telemetry/process-metrics.ts';
import { createOperatorMetrics } from '#operator/watch/metrics.ts';

const HEAD = `# Metrics

<!-- Generated from the registered metrics by "npm run generate"; edits here are lost. -->

The sidecar serves \`/metrics\` on port 7318 of the pod address, the operator on its metrics port, 8080.
No metric has a label for a tenant, a user, a session or a tool. \`server\` is the alias of a server in
the binding; requests that belong to no server, or to one that has just been removed, count as \`other\`.
A histogram has the usual \`_bucket\`, \`_sum\` and \`_count\` series.
`;

interface DescribedMetric {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames: readonly string[];
}

/** The whole document. */
export async function renderMetricTable(): Promise<string> {
  const sidecar = new Registry();
  createSidecarMetrics(sidecar);
  const operator = new Registry();
  createOperatorMetrics(operator);
  const process = new Registry();
  registerProcessMetrics(process, systemClock);
  const parts = [
    section('Sidecar', await describe(sidecar)),
    section('Operator', await describe(operator)),
    section('Both', await describe(process)),
  ];
  return `${HEAD}\n${parts.join('\n')}`;
}

async function describe(registry: Registry): Promise<readonly DescribedMetric[]> {
  const described = await registry.getMetricsAsJSON();
  return described.map(({ name, help, type }) => {
    const metric: unknown = registry.getSingleMetric(name);
    const labelNames: unknown = Reflect.get(Object(metric), 'labelNames');
    return { name, help, type: String(type), labelNames: asNames(labelNames) };
  });
}

function asNames(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : [];
}

function section(title: string, metrics: readonly DescribedMetric[]): string {
  const sorted = metrics.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const rows = sorted.map(({ name, type, labelNames, help }) => {
    const labels =
      labelNames.length === 0 ? '-' : labelNames.map((label) => `\`${label}\``).join(', ');
    return `| \`${name}\` | ${type} | ${labels} | ${help.replaceAll('|', '\\|')} |`;
  });
  return [
    `## ${title}`,
    '',
    '| Name | Type | Labels | Meaning |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
