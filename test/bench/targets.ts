// The targets that the bench compares, and how each is started on an upstream. A target counts as
// started when a tools/call came through it, and every answer on its port comes from its process.

import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { Clock } from '#core/clock.ts';

import type { TargetName } from './bench-options.ts';
import type { Programs } from './build-programs.ts';
import { waitForFirstCall } from './first-call.ts';
import { findFreePort } from './loopback-ports.ts';
import type { BenchProcess, ProcessGroup } from './process-group.ts';
import { readListenerPids, readProcessTree } from './process-tree.ts';
import { renderNginxConfig } from './render-nginx-config.ts';
import { renderSidecarConfig } from './render-sidecar-config.ts';

export interface TargetContext {
  readonly programs: Programs;
  readonly nginx: string | undefined;
  readonly group: ProcessGroup;
  readonly clock: Clock;
  /** Of this run; each start makes a folder of its own in it. */
  readonly dir: string;
  readonly upstreamPort: number;
}

export interface RunningTarget {
  readonly name: TargetName;
  readonly port: number;
  /** The name under which the target serves the upstream's `echo`. */
  readonly tool: string;
  readonly process: BenchProcess;
  /** From the start of the process to the first answered tools/call. */
  readonly firstCallMs: number;
}

interface LaunchPlan {
  readonly command: string;
  readonly args: readonly string[];
}

interface LaunchInput {
  readonly dir: string;
  readonly port: number;
  readonly deadPorts: readonly number[];
}

export async function startTarget(
  name: TargetName,
  context: TargetContext,
  deadPorts: readonly number[] = [],
): Promise<RunningTarget> {
  const { clock } = context;
  const dir = await mkdtemp(join(context.dir, `${name}-`));
  const port = await findFreePort();
  const plan = await planLaunch(name, context, { dir, port, deadPorts });
  const tool = name === 'sidecar' ? 'up__echo' : 'echo';
  const startedMs = clock.monotonicMs();
  const started = context.group.start({ ...plan, logFile: join(dir, 'output.log') });
  try {
    await waitForFirstCall({ port, tool, clock, isAlive: () => !started.hasExited });
  } catch (error) {
    throw new Error(
      `${name} did not start: ${error instanceof Error ? error.message : String(error)}\n${started.logTail()}`,
      { cause: error },
    );
  }
  const firstCallMs = clock.monotonicMs() - startedMs;
  const target = { name, port, tool, process: started, firstCallMs };
  assertAnswersItself(target);
  return target;
}

/** A forgotten process on the same port would be measured instead, and nobody would notice. */
export function assertAnswersItself({ name, port, process }: RunningTarget): void {
  const tree = readProcessTree(process.pid);
  const listeners = readListenerPids(port);
  if (listeners.length === 0 || listeners.some((pid) => !tree.has(pid))) {
    throw new Error(
      `port ${port} of ${name} is served by ${JSON.stringify(listeners)}, not by its process ${process.pid}`,
    );
  }
}

async function planLaunch(
  name: TargetName,
  context: TargetContext,
  input: LaunchInput,
): Promise<LaunchPlan> {
  const { programs, upstreamPort } = context;
  const port = String(input.port);
  const upstream = `http://127.0.0.1:${upstreamPort}`;
  switch (name) {
    case 'nginx':
      return planNginx(context, input);
    case 'pass-through':
      return {
        command: process.execPath,
        args: [programs.passThrough, '--port', port, '--upstream', upstream],
      };
    case 'sdk-v1-proxy':
      return {
        command: process.execPath,
        args: [programs.sdkV1Proxy, '--port', port, '--upstream', `${upstream}/mcp`],
      };
    case 'sidecar':
      return planSidecar(context, input);
    default:
      return name satisfies never;
  }
}

async function planNginx(
  { nginx, upstreamPort }: TargetContext,
  { dir, port }: LaunchInput,
): Promise<LaunchPlan> {
  const file = join(dir, 'nginx.conf');
  await writeFile(file, renderNginxConfig({ dir, port, upstreamPort }));
  return { command: nginx ?? 'nginx', args: ['-e', 'stderr', '-p', dir, '-c', file] };
}

async function planSidecar(
  { programs, upstreamPort }: TargetContext,
  { dir, port, deadPorts }: LaunchInput,
): Promise<LaunchPlan> {
  const configDir = join(dir, 'config');
  const stateDir = join(dir, 'state');
  await mkdir(configDir);
  await mkdir(stateDir);
  await writeFile(
    join(configDir, 'config.json'),
    renderSidecarConfig({ agentPort: port, upstreamPort, deadPorts }),
  );
  const args = [
    'sidecar',
    '--config-dir',
    configDir,
    '--state-dir',
    stateDir,
    '--port',
    String(port),
  ];
  const healthPort = await findFreePort();
  return {
    command: process.execPath,
    args: [programs.fairlead, ...args, '--health-port', String(healthPort), '--development'],
  };
}
