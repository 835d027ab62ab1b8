// Gathers log lines and hands them on in large pieces: a write for each line costs more than the
// line. A quiet program's lines leave after a moment, and all of them when the process ends.

import type { Clock, TimerHandle } from '#core/clock.ts';

const BATCH_CHARACTERS = 131_072;
const FLUSH_MS = 25;

/** The part of pino's destination that is used here. */
export interface BatchOutput {
  write(text: string): unknown;
  /** Writes what is buffered before the process ends. */
  flushSync?(): void;
}

export class LineBatch {
  readonly #output: BatchOutput;
  readonly #clock: Clock;
  #text = '';
  #timer: TimerHandle | undefined;

  constructor(output: BatchOutput, clock: Clock) {
    this.#output = output;
    this.#clock = clock;
    // In front of the output's own listeners, which close it.
    process.prependListener('beforeExit', () => this.flush());
    process.prependListener('exit', () => this.end());
  }

  /** One whole line, with its line feed. */
  write(line: string): void {
    this.#text += line;
    if (this.#text.length >= BATCH_CHARACTERS) this.flush();
    else this.#timer ??= this.#clock.setTimer(FLUSH_MS, () => this.flush(), { unref: true });
  }

  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#text === '') return;
    const text = this.#text;
    this.#text = '';
    this.#output.write(text);
  }

  /** The process ends: what is still here is written before that. */
  end(): void {
    this.flush();
    this.#output.flushSync?.();
  }
}
