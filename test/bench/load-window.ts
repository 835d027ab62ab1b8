// One measured window: mcpload against a target, and the CPU time of the target's process tree
// over exactly the seconds that mcpload measures. A window with a failed call has no figures.

import { spawn } from 'node:child_process';

import type { Era } from './results.ts';
import { parseMcploadReport, type McploadReport } from './mcpload-report.ts';
import { readCpuNs, readProcessTree, readRssMib } from './process-tree.ts';
import type { RunningTarget } from './targets.ts';

export interface WindowOptions {
  readonly mcpload: string;
  readonly callers: number;
  readonly era: Era;
  readonly warmUpSeconds: number;
  readonly seconds: number;
  /** Put before the command, such as `taskset -c 1`. */
  readonly prefix: readonly string[];
}

export interface WindowFigures {
  readonly cpuUsPerCall: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly callsPerSecond: number;
  readonly rssMib: number;
}

export type WindowOutcome =
  | { readonly kind: 'ok'; readonly figures: WindowFigures }
  | { readonly kind: 'invalid'; readonly reason: string };

export async function measureWindow(
  target: RunningTarget,
  options: WindowOptions,
): Promise<WindowOutcome> {
  target.process.emptyLog();
  const pids = readProcessTree(target.process.pid);
  const { report, cpuNs } = await runMcpload(target, options, () => readCpuNs(pids));
  if (report.kind === 'invalid') return report;
  const { calls, p50Us, p99Us, callsPerSecond } = report;
  const rssMib = readRssMib(readProcessTree(target.process.pid));
  return {
    kind: 'ok',
    figures: { cpuUsPerCall: cpuNs / 1000 / calls, p50Us, p99Us, callsPerSecond, rssMib },
  };
}

function mcploadArgs(target: RunningTarget, options: WindowOptions): string[] {
  const { callers, era, warmUpSeconds, seconds } = options;
  return [
    '-p',
    target.port,
    '-n',
    target.tool,
    '-c',
    callers,
    '-e',
    era,
    '-w',
    warmUpSeconds,
    '-t',
    seconds,
  ].map(String);
}

interface LoadRun {
  readonly report: McploadReport;
  readonly cpuNs: number;
}

function runMcpload(
  target: RunningTarget,
  options: WindowOptions,
  readCpu: () => number,
): Promise<LoadRun> {
  const [command = options.mcpload, ...args] = [
    ...options.prefix,
    options.mcpload,
    ...mcploadArgs(target, options),
  ];
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: Math.ceil(options.warmUpSeconds + options.seconds + 60) * 1000,
    });
    let [stdout, startNs, endNs] = ['', 0, 0];
    // mcpload writes START when it begins to count, and its report when it has stopped.
    child.stderr.setEncoding('latin1').on('data', (text: string) => {
      if (text.includes('START')) startNs = readCpu();
    });
    child.stdout.setEncoding('latin1').on('data', (text: string) => {
      if (stdout === '') endNs = readCpu();
      stdout += text;
    });
    child.once('error', reject);
    child.once('close', () =>
      resolve({ report: parseMcploadReport(stdout), cpuNs: endNs - startNs }),
    );
  });
}
