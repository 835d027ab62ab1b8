// Tells when something below a directory changed: by the system's notifications, and by a poll for
// file systems that send none. Changes within a moment come as one.

import { watch, type FSWatcher } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

import type { Clock, TimerHandle } from '#core/clock.ts';

const SETTLE_MS = 100;
const POLL_MS = 2_000;

export interface DirectoryWatchOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly onChange: () => void;
}

export class DirectoryWatch implements Disposable {
  readonly #options: DirectoryWatchOptions;
  readonly #watcher: FSWatcher | undefined;
  #settling: TimerHandle | undefined;
  #polling: TimerHandle | undefined;
  #fingerprint = '';
  #isClosed = false;

  constructor(options: DirectoryWatchOptions) {
    this.#options = options;
    this.#watcher = this.#watch();
    void this.#poll(true);
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#watcher?.close();
    this.#settling?.cancel();
    this.#polling?.cancel();
  }

  #watch(): FSWatcher | undefined {
    try {
      const watcher = watch(this.#options.directory, { recursive: true }, () => this.#settle());
      // The poll goes on when notifications break off.
      watcher.on('error', () => {});
      return watcher;
    } catch {
      return undefined;
    }
  }

  #settle(): void {
    if (this.#isClosed) return;
    this.#settling?.cancel();
    this.#settling = this.#options.clock.setTimer(SETTLE_MS, this.#options.onChange);
  }

  async #poll(isFirst: boolean): Promise<void> {
    const fingerprint = await fingerprintOf(this.#options.directory);
    if (this.#isClosed) return;
    if (!isFirst && fingerprint !== this.#fingerprint) this.#settle();
    this.#fingerprint = fingerprint;
    this.#polling = this.#options.clock.setTimer(POLL_MS, () => void this.#poll(false), {
      unref: true,
    });
  }
}

async function fingerprintOf(directory: string): Promise<string> {
  try {
    const entries = await readdir(directory, { recursive: true });
    const files = entries.filter((entry) => !entry.includes('node_modules')).toSorted();
    const facts = await Promise.all(
      files.map((file) =>
        stat(join(directory, file)).then(
          ({ mtimeMs, size }) => `${file} ${String(mtimeMs)} ${String(size)}`,
          () => file,
        ),
      ),
    );
    return facts.join('\n');
  } catch {
    return 'unreadable';
  }
}
