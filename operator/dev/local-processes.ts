// The local programs that DIR/fairlead-dev.yaml names: started before the sidecar, stopped after
// it. For servers that a developer runs beside the agent; never part of a cluster.

import { spawn, type ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { delimiter } from 'node:path';

import { parse } from 'yaml';
import { z } from 'zod';

import type { Clock } from '#core/clock.ts';
import { formatPath } from '#core/config/sidecar-config.ts';

import { readLines } from './line-reader.ts';
import { PROCESSES_FILE } from './load-manifests.ts';
import { getLocal } from './local-http.ts';
import { ownCommand } from './own-program.ts';
import type { DevReport } from './dev-report.ts';
import { programEnvironment } from './settings.ts';

const READY_TIMEOUT_MS = 30_000;
const POLL_MS = 100;
const KEPT_LINES = 20;

const processSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/),
  command: z.array(z.string().min(1)).min(1),
  env: z.record(z.string(), z.string()).default({}),
  /** Answers something, whatever it is, once the program serves. */
  readyUrl: z
    .url({ protocol: /^http$/, hostname: /^(127\.0\.0\.1|localhost|\[::1\])$/ })
    .optional(),
});
const fileSchema = z.strictObject({ processes: z.array(processSchema).max(32) });

export type LocalProcess = z.infer<typeof processSchema>;

export type ReadProcesses =
  | { readonly kind: 'ok'; readonly processes: readonly LocalProcess[] }
  | { readonly kind: 'bad'; readonly problems: readonly string[] };

/** No file means no processes. */
export async function readProcesses(directory: string): Promise<ReadProcesses> {
  const file = join(directory, PROCESSES_FILE);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { kind: 'ok', processes: [] };
    return { kind: 'bad', problems: [`${file}: cannot be read`] };
  }
  try {
    const parsed = fileSchema.safeParse(parse(text) ?? { processes: [] });
    if (parsed.success) return { kind: 'ok', processes: parsed.data.processes };
    return {
      kind: 'bad',
      problems: parsed.error.issues.map(
        (issue) => `${file}: ${formatPath(issue.path)}: ${issue.message}`,
      ),
    };
  } catch (error) {
    return {
      kind: 'bad',
      problems: [
        `${file}: is not valid YAML: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''}`,
      ],
    };
  }
}

interface Running {
  readonly local: LocalProcess;
  readonly child: ChildProcess;
  readonly exited: Promise<void>;
  readonly lastLines: string[];
  isExpected: boolean;
}

export interface LocalProcessesOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly report: DevReport;
}

export class LocalProcesses implements AsyncDisposable {
  readonly #options: LocalProcessesOptions;
  readonly #running: Running[] = [];

  constructor(options: LocalProcessesOptions) {
    this.#options = options;
  }

  /** Starts all and waits until each answers, or has ended, or time is up; returns what is wrong. */
  async start(processes: readonly LocalProcess[], stop: AbortSignal): Promise<string[]> {
    for (const local of processes) this.#running.push(this.#spawn(local));
    const faults = await Promise.all(
      this.#running.map((running) => this.#untilReady(running, stop)),
    );
    return faults.filter((fault) => fault !== undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const running of this.#running) {
      running.isExpected = true;
      // The guard ends the program when its standard input closes.
      running.child.stdin?.end();
    }
    await Promise.all(this.#running.map(({ exited }) => exited));
  }

  #spawn(local: LocalProcess): Running {
    const { directory, report } = this.#options;
    const { program, args } = ownCommand('dev-guard', ...local.command);
    const child = spawn(program, args, {
      cwd: directory,
      env: environmentOf(local),
      stdio: ['pipe', 'pipe', 'pipe'],
      // Ctrl-C in the terminal must not end them while calls are still in flight.
      detached: true,
    });
    const lastLines: string[] = [];
    const keep = (line: string): void => {
      lastLines.push(line);
      if (lastLines.length > KEPT_LINES) lastLines.shift();
    };
    readLines(child.stdout, keep);
    readLines(child.stderr, keep);
    const exited = new Promise<void>((resolve) => {
      child.once('exit', (code) => {
        if (!running.isExpected) report.processEnded(local.name, code, lastLines);
        resolve();
      });
      child.once('error', () => resolve());
    });
    const running: Running = { local, child, exited, lastLines, isExpected: false };
    return running;
  }

  async #untilReady(
    { local, child, lastLines }: Running,
    stop: AbortSignal,
  ): Promise<string | undefined> {
    const { clock } = this.#options;
    const { readyUrl } = local;
    if (readyUrl === undefined) return undefined;
    const deadlineMs = clock.monotonicMs() + READY_TIMEOUT_MS;
    while (clock.monotonicMs() < deadlineMs && !stop.aborted) {
      if (child.exitCode !== null)
        return `${local.name} ended with code ${String(child.exitCode)}${tail(lastLines)}`;
      if ((await getLocal(readyUrl)) !== undefined) return undefined;
      await clock.sleep(POLL_MS, stop).catch(() => {});
    }
    if (stop.aborted) return undefined;
    return `${local.name} does not answer on ${readyUrl}${tail(lastLines)}`;
  }
}

function tail(lines: readonly string[]): string {
  return lines.length === 0 ? '' : `:\n${lines.map((line) => `    ${line}`).join('\n')}`;
}

/** `node` means the Node that runs us, whatever the system has. */
function environmentOf(local: LocalProcess): NodeJS.ProcessEnv {
  const inherited = programEnvironment();
  return {
    ...inherited,
    PATH: `${dirname(process.execPath)}${delimiter}${inherited['PATH'] ?? ''}`,
    ...local.env,
  };
}
