// Runs one test file in a process of its own and collects its events, its output and its end. A
// file that does not end in time is ended, with everything that it started.

import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { FileEnd } from './file-result.ts';

/** Of the output only the end is kept: enough to see why a file failed. */
const MAX_OUTPUT = 8_000;
const REPORTER = new URL('./event-log-reporter.ts', import.meta.url).href;

export interface RunFileOptions {
  readonly directory: string;
  readonly timeoutMs: number;
  readonly nodeFlags: readonly string[];
  readonly signal: AbortSignal;
  /** Turns the command line into the one that is run, such as into one inside a namespace. */
  readonly wrap?: (command: readonly string[]) => string[];
}

export async function runFile(path: string, options: RunFileOptions): Promise<FileEnd> {
  const scratch = await mkdtemp(join(tmpdir(), 'fairlead-test-'));
  const log = join(scratch, 'events.jsonl');
  const startedAt = performance.now();
  try {
    const reporter = [`--test-reporter=${REPORTER}`, `--test-reporter-destination=${log}`];
    const command = [process.execPath, ...reporter, ...options.nodeFlags, path];
    const [program = '', ...args] = options.wrap?.(command) ?? command;
    const child = spawn(program, args, {
      cwd: options.directory,
      // Of an outer run the file must know nothing, or it reports there.
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own: what it started ends with it.
      detached: true,
    });
    const ended = await waitForEnd(child, options);
    const eventLog = await readFile(log, 'utf8').catch(() => '');
    return { path, ...ended, durationMs: performance.now() - startedAt, eventLog };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

type ProcessEnd = Pick<FileEnd, 'exitCode' | 'timedOutAfterMs' | 'output'>;

async function waitForEnd(child: ChildProcess, options: RunFileOptions): Promise<ProcessEnd> {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-MAX_OUTPUT);
    });
  }
  let timedOutAfterMs: number | undefined;
  const endGroup = (): void => killGroup(child);
  const timer = setTimeout(() => {
    timedOutAfterMs = options.timeoutMs;
    endGroup();
  }, options.timeoutMs);
  options.signal.addEventListener('abort', endGroup);
  const [exitCode] = (await once(child, 'exit')) as [number | null];
  clearTimeout(timer);
  options.signal.removeEventListener('abort', endGroup);
  // Not 'close': a grandchild that outlives its parent would hold the pipes open.
  child.stdout?.destroy();
  child.stderr?.destroy();
  return { exitCode, timedOutAfterMs, output };
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
