// A child process that a test owns: its output is kept for error messages, its end can be awaited, and it
// dies with the test process, however that ends.

import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';

import { systemClock } from '#core/clock.ts';

export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ManagedProcessOptions {
  readonly command: readonly string[];
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Added to error messages. */
  readonly name: string;
}

const KEPT_OUTPUT = 64 * 1024;
let hasExitOnSignals = false;

/** A test process that is ended by a signal must run its exit handlers, which end the children. */
export function exitOnSignals(): void {
  if (hasExitOnSignals) return;
  hasExitOnSignals = true;
  process.once('SIGTERM', () => process.exit(143));
  process.once('SIGINT', () => process.exit(130));
}

export class ManagedProcess implements AsyncDisposable {
  readonly name: string;
  readonly exited: Promise<ProcessExit>;
  readonly #child: ChildProcess;
  readonly #onOutput = new Set<() => void>();
  #output = '';
  #exit: ProcessExit | undefined;

  constructor(options: ManagedProcessOptions) {
    this.name = options.name;
    const [program = '', ...args] = options.command;
    this.#child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(options.env === undefined ? {} : { env: options.env }),
    });
    const killWithParent = (): void => void this.#child.kill('SIGKILL');
    exitOnSignals();
    process.once('exit', killWithParent);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => this.#keep(text));
    }
    this.exited = new Promise((resolve) => {
      const end = (exit: ProcessExit): void => {
        process.off('exit', killWithParent);
        this.#exit ??= exit;
        this.#keep('');
        resolve(this.#exit);
      };
      this.#child.once('error', (error) => {
        this.#keep(`${error.message}\n`);
        end({ code: 127, signal: null });
      });
      this.#child.once('close', (code, signal) => end({ code, signal }));
    });
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get exit(): ProcessExit | undefined {
    return this.#exit;
  }

  /** The last part of stdout and stderr together. */
  get output(): string {
    return this.#output;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Resolves with the match once the output has it; rejects when the process ends or time is up first. */
  async waitForOutput(pattern: RegExp, timeoutMs = 30_000): Promise<RegExpExecArray> {
    const deadline = AbortSignal.timeout(timeoutMs);
    for (;;) {
      const match = pattern.exec(this.#output);
      if (match !== null) return match;
      if (this.#exit !== undefined || deadline.aborted)
        throw this.#failure(`without ${String(pattern)}`);
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#onOutput.delete(wake);
          deadline.removeEventListener('abort', wake);
          resolve();
        };
        this.#onOutput.add(wake);
        deadline.addEventListener('abort', wake, { once: true });
      });
    }
  }

  /** SIGTERM, and SIGKILL for one that does not follow. */
  async stop(graceMs = 10_000): Promise<ProcessExit> {
    this.signal('SIGTERM');
    const timer = systemClock.setTimer(graceMs, () => this.signal('SIGKILL'));
    const exit = await this.exited;
    timer.cancel();
    return exit;
  }

  async kill(): Promise<ProcessExit> {
    this.signal('SIGKILL');
    return this.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#exit === undefined) await this.stop();
  }

  #keep(text: string): void {
    this.#output = (this.#output + text).slice(-KEPT_OUTPUT);
    for (const wake of [...this.#onOutput]) wake();
  }

  #failure(what: string): Error {
    const state =
      this.#exit === undefined ? 'is still running' : `ended (${JSON.stringify(this.#exit)})`;
    return new Error(`${this.name} ${state} ${what}:\n${this.#output.slice(-4_000)}`);
  }
}
