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
  const value = (
    name: string,
    help: string,
    type: ScrapedMetric['type'],
    read: () => number,
  ): void => {
    registerScraped(registry, { name, help, type, samples: () => [{ labels: {}, value: read() }] });
  };
  registerScraped(registry, {
    name: 'fairlead_build_info',
    help: 'Always 1; the version and the Node that runs it are labels.',
    type: 'gauge',
    samples: () => [{ labels: { version: VERSION, node: process.version }, value: 1 }],
  });
  value(
    'process_start_time_seconds',
    'Start of the process in seconds since the Unix epoch.',
    'gauge',
    () => startSeconds,
  );
  value(
    'process_cpu_seconds_total',
    'User and system CPU time spent, in seconds.',
    'counter',
    cpuSeconds,
  );
  value('process_resident_memory_bytes', 'Resident memory in bytes.', 'gauge', () =>
    process.memoryUsage.rss(),
  );
  value(
    'process_open_fds',
    'Open file descriptors; 0 where /proc is missing.',
    'gauge',
    openDescriptors,
  );
  value(
    'nodejs_eventloop_utilization',
    'Share of time that the event loop was busy since the last scrape, 0 to 1.',
    'gauge',
    () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, lastUtilization);
      lastUtilization = now;
      return utilization;
    },
  );
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
