// The sidecar as a child process, exactly as it runs in a pod but for its start options. Its log
// lines come back as events; it ends when we do, however we end.

import { spawn, type ChildProcess } from 'node:child_process';

import { readLines } from './line-reader.ts';
import { ownCommand } from './own-program.ts';

export interface SidecarReady {
  readonly agentPort: number;
  readonly healthPort: number;
}

export interface SidecarChildOptions {
  readonly configDirectory: string;
  readonly stateDirectory: string;
  readonly port: number;
  /** Every log line after the ready line, parsed. */
  readonly onLine: (line: Readonly<Record<string, unknown>>) => void;
}

export class SidecarChild {
  /** Exit code; null after a signal. */
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcess;
  readonly #ready = Promise.withResolvers<SidecarReady>();
  #lastError = '';
  #isReady = false;

  constructor(options: SidecarChildOptions) {
    const { configDirectory, stateDirectory, port, onLine } = options;
    const flags = [
      '--config-dir',
      configDirectory,
      '--state-dir',
      stateDirectory,
      '--port',
      String(port),
      '--health-port',
      '0',
      '--health-host',
      '127.0.0.1',
    ];
    const { program, args } = ownCommand(
      'sidecar',
      ...flags,
      '--development',
      '--exit-with-parent',
    );
    // Not in the terminal's foreground group: Ctrl-C must reach it once, through us. Our end closes
    // its standard input, so it does not outlive us either.
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    readLines(this.#child.stdout, (text) => this.#read(text, onLine));
    readLines(this.#child.stderr, (text) => {
      this.#lastError = text;
    });
    this.exited = new Promise((resolve) => {
      this.#child.once('error', (error) => {
        this.#lastError = error.message;
        resolve(1);
      });
      this.#child.once('close', (code) => resolve(code));
    });
    void this.exited.then(() =>
      this.#ready.reject(
        new Error(
          this.#lastError === '' ? 'the sidecar ended before it was ready' : this.#lastError,
        ),
      ),
    );
    this.#ready.promise.catch(() => {});
  }

  /** Rejects with the sidecar's own words when it ends first. */
  untilReady(): Promise<SidecarReady> {
    return this.#ready.promise;
  }

  /** Drains: what is in flight may finish. */
  stop(): void {
    this.#child.kill('SIGTERM');
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #read(text: string, onLine: SidecarChildOptions['onLine']): void {
    const line = parseLine(text);
    if (line === undefined) return;
    if (this.#isReady) {
      onLine(line);
      return;
    }
    if (line['event'] !== 'ready') return;
    this.#isReady = true;
    this.#ready.resolve({
      agentPort: Number(line['agent_port']),
      healthPort: Number(line['health_port']),
    });
  }
}

function parseLine(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}
