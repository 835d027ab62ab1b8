// The process metrics that dashboards expect under their usual names. prom-client's own set is
// not used: it keeps timers and observers running, which an idle sidecar pays for in every pod.

import { readdirSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

import type { Clock } from '#core/clock.ts';
import { VERSION } from '#core/version.ts';

import { registerScraped } from './series.ts';
import type { MetricRegistry, ScrapedMetric } from './series.ts';

export function registerProcessMetrics(registry: MetricRegistry, clock: Clock): void {
  const startSeconds = Math.round(clock.nowMs() / 1000 - process.uptime());
  let lastUtilization = performance.eventLoopUtilization();
  const utilization = (): number => {
    const now = performance.eventLoopUtilization();
    const share = performance.eventLoopUtilization(now, lastUtilization).utilization;
    lastUtilization = now;
    return share;
  };
  const single: readonly (Omit<ScrapedMetric, 'samples' | 'labelNames'> & {
    readonly read: () => number;
  })[] = [
    {
      name: 'process_start_time_seconds',
      help: 'Start of the process in seconds since the Unix epoch.',
      type: 'gauge',
      read: () => startSeconds,
    },
    {
      name: 'process_cpu_seconds_total',
      help: 'User and system CPU time spent, in seconds.',
      type: 'counter',
      read: cpuSeconds,
    },
    {
      name: 'process_resident_memory_bytes',
      help: 'Resident memory in bytes.',
      type: 'gauge',
      read: () => process.memoryUsage.rss(),
    },
    {
      name: 'process_open_fds',
      help: 'Open file descriptors; 0 where /proc is missing.',
      type: 'gauge',
      read: openDescriptors,
    },
    {
      name: 'nodejs_eventloop_utilization',
      help: 'Share of time that the event loop was busy since the last scrape, 0 to 1.',
      type: 'gauge',
      read: utilization,
    },
  ];
  for (const { read, ...metric } of single) {
    registerScraped(registry, {
      ...metric,
      labelNames: [],
      samples: () => [{ labels: {}, value: read() }],
    });
  }
  registerScraped(registry, {
    name: 'fairlead_build_info',
    help: 'Always 1; the version and the Node that runs it are labels.',
    type: 'gauge',
    labelNames: ['version', 'node'],
    samples: () => [{ labels: { version: VERSION, node: process.version }, value: 1 }],
  });
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

function openDescriptors(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return 0;
  }
}
