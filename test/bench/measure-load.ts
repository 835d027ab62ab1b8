// CPU per call, latency and memory: all targets run at once, each round measures them in turn and
// begins with another one. One caller is measured with everything on one core, where waking an
// idle core does not blur it; 32 callers on all cores.

import { spawnSync } from 'node:child_process';

import type { TargetName } from './bench-options.ts';
import { measureWindow, type WindowFigures, type WindowOptions } from './load-window.ts';
import { readAllowedCores, readListenerPids, readProcessTree, readRssMib } from './process-tree.ts';
import type { Era, Results } from './results.ts';
import {
  assertAnswersItself,
  startTarget,
  type RunningTarget,
  type TargetContext,
} from './targets.ts';

const MAX_TRIES = 3;
const SETTLE_MS = 1500;

export interface LoadPlan {
  readonly rounds: number;
  readonly seconds: number;
  /** Unmeasured load before the first round, so that code is compiled and heaps have grown. */
  readonly heatSeconds: number;
}

export const THOROUGH_LOAD: LoadPlan = { rounds: 12, seconds: 0.6, heatSeconds: 4 };
export const QUICK_LOAD: LoadPlan = { rounds: 3, seconds: 0.7, heatSeconds: 3 };

export interface LoadOptions {
  readonly context: TargetContext;
  readonly targets: readonly TargetName[];
  readonly results: Results;
  readonly plan: LoadPlan;
  readonly say: (line: string) => void;
}

interface Phase {
  readonly label: string;
  readonly callers: number;
  readonly era: Era;
  readonly isPinned: boolean;
  readonly record: (results: Results, name: TargetName, figures: WindowFigures) => void;
}

const PHASES: readonly Phase[] = [
  {
    label: '32 callers',
    callers: 32,
    era: 2025,
    isPinned: false,
    record(results, name, figures) {
      results.add(name, 'cpu32', figures.cpuUsPerCall);
      results.add(name, 'p50At32', figures.p50Us);
      results.add(name, 'p99At32', figures.p99Us);
      results.add(name, 'rate32', figures.callsPerSecond);
      results.add(name, 'loadedMib', figures.rssMib);
    },
  },
  {
    label: '32 callers, 2026-07-28',
    callers: 32,
    era: 2026,
    isPinned: false,
    record: (results, name, figures) => results.add(name, 'cpu32Modern', figures.cpuUsPerCall),
  },
  {
    label: '1 caller',
    callers: 1,
    era: 2025,
    isPinned: true,
    record(results, name, figures) {
      results.add(name, 'p50At1', figures.p50Us);
      results.add(name, 'p99At1', figures.p99Us);
    },
  },
];

export async function measureLoad(options: LoadOptions): Promise<void> {
  const { context, results } = options;
  const running: RunningTarget[] = [];
  for (const name of options.targets) running.push(await startTarget(name, context));
  await context.clock.sleep(SETTLE_MS);
  for (const target of running)
    results.add(target.name, 'idleMib', readRssMib(readProcessTree(target.process.pid)));
  for (const phase of PHASES) await measurePhase(phase, running, options);
  for (const target of running) await target.process[Symbol.asyncDispose]();
}

async function measurePhase(
  phase: Phase,
  running: readonly RunningTarget[],
  { context, results, plan, say }: LoadOptions,
): Promise<void> {
  // The SDK v1 knows no stateless era.
  const targets = running.filter(({ name }) => phase.era === 2025 || name !== 'sdk-v1-proxy');
  const pinned = phase.isPinned ? pinAll(targets, context.upstreamPort, say) : undefined;
  const base = {
    mcpload: context.programs.mcpload,
    callers: phase.callers,
    era: phase.era,
    prefix: pinned?.prefix ?? [],
  };
  for (const target of targets)
    await measureValidWindow(target, { ...base, warmUpSeconds: plan.heatSeconds, seconds: 0.1 });
  for (let round = 0; round < plan.rounds; round += 1) {
    say(`${phase.label}: round ${round + 1} of ${plan.rounds}`);
    for (const target of rotate(targets, round)) {
      const figures = await measureValidWindow(target, {
        ...base,
        warmUpSeconds: 0.3,
        seconds: plan.seconds,
      });
      phase.record(results, target.name, figures);
    }
  }
  pinned?.undo();
}

function rotate<T>(items: readonly T[], by: number): readonly T[] {
  const start = by % Math.max(items.length, 1);
  return [...items.slice(start), ...items.slice(0, start)];
}

async function measureValidWindow(
  target: RunningTarget,
  window: WindowOptions,
): Promise<WindowFigures> {
  let reason = '';
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    assertAnswersItself(target);
    const outcome = await measureWindow(target, window);
    if (outcome.kind === 'ok') return outcome.figures;
    reason = outcome.reason;
  }
  throw new Error(
    `${target.name}: ${MAX_TRIES} windows with ${window.callers} callers had failed calls: ${reason}\n${target.process.logTail()}`,
  );
}

interface Pinned {
  /** Puts mcpload on the same core. */
  readonly prefix: readonly string[];
  undo(): void;
}

/** Moves the targets and the upstream to the last core of those that this process may use. */
function pinAll(
  targets: readonly RunningTarget[],
  upstreamPort: number,
  say: (line: string) => void,
): Pinned {
  const pids = [
    ...readListenerPids(upstreamPort),
    ...targets.flatMap(({ process }) => [...readProcessTree(process.pid)]),
  ];
  const allowed = readAllowedCores();
  const core = /[0-9]+$/.exec(allowed)?.[0] ?? '0';
  const undo = (): void => void moveTo(allowed, pids);
  if (moveTo(core, pids)) return { prefix: ['taskset', '-c', core], undo };
  say('taskset cannot pin the processes: one caller is measured on all cores');
  undo();
  return { prefix: [], undo };
}

function moveTo(cores: string, pids: readonly number[]): boolean {
  return pids.every(
    (pid) =>
      spawnSync('taskset', ['-a', '-c', '-p', cores, String(pid)], { stdio: 'ignore' }).status ===
      0,
  );
}
