// The processes that a run of the bench started. Disposing ends them all, also when the run is
// interrupted; nothing else is ever signalled.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, truncateSync } from 'node:fs';

const STOP_TIMEOUT_MS = 5000;

export interface StartOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** stdout and stderr, appended. */
  readonly logFile: string;
}

export class BenchProcess implements AsyncDisposable {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #logFile: string;

  constructor(child: ChildProcess, logFile: string) {
    if (child.pid === undefined) throw new Error(`${child.spawnfile} cannot be started`);
    this.pid = child.pid;
    this.#child = child;
    this.#logFile = logFile;
  }

  get hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** The last lines of its output, for the message of a failure. */
  logTail(): string {
    return readFileSync(this.#logFile, 'utf8').trimEnd().split('\n').slice(-12).join('\n');
  }

  /** Real writes to a real file, yet the disk does not fill. */
  emptyLog(): void {
    truncateSync(this.#logFile);
  }

  killNow(): void {
    this.#child.kill('SIGKILL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.hasExited) return;
    const exited = once(this.#child, 'exit');
    const timer = setTimeout(() => this.killNow(), STOP_TIMEOUT_MS);
    this.#child.kill('SIGTERM');
    await exited;
    clearTimeout(timer);
  }
}

export class ProcessGroup implements AsyncDisposable {
  readonly #processes = new Set<BenchProcess>();

  start({ command, args, logFile }: StartOptions): BenchProcess {
    const log = openSync(logFile, 'a');
    try {
      const child = spawn(command, args, { stdio: ['ignore', log, log] });
      // Without a listener a missing program would end the bench; the missing pid already tells.
      child.once('error', () => {});
      const started = new BenchProcess(child, logFile);
      this.#processes.add(started);
      child.once('exit', () => this.#processes.delete(started));
      return started;
    } finally {
      closeSync(log);
    }
  }

  killNow(): void {
    for (const each of this.#processes) each.killNow();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(Array.from(this.#processes, (each) => each[Symbol.asyncDispose]()));
  }
}
