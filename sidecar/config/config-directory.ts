// The mounted directory that holds config.json. A kubelet swaps the `..data` link of a volume
// atomically: everything is read through one resolved target, never through the link twice. The
// directory is watched, not the file (a swap replaces the file), and polled, because a watch may
// see nothing at all on some volumes.

import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { readFile, readlink, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import type { Clock, TimerHandle } from '#core/clock.ts';
import { CONFIG_FILE } from '#core/config/sidecar-config.ts';

export const POLL_MS = 5_000;
const DEBOUNCE_MS = 100;
/** A ConfigMap holds 1 MiB; whatever is far larger is no configuration. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;
const SWAP_TRIES = 3;

export type ConfigText =
  | { readonly kind: 'text'; readonly text: string }
  /** `directory`: the directory itself cannot be used; `file`: it holds no readable config.json. */
  | { readonly kind: 'unreadable'; readonly what: 'directory' | 'file'; readonly message: string };

export async function readConfigText(directory: string): Promise<ConfigText> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await readOnce(directory);
    } catch (error) {
      const code = codeOf(error);
      // Between the two reads a swap may have removed the target.
      if (code === 'ENOENT' && tries < SWAP_TRIES && (await isDirectory(directory))) continue;
      const what = (await isDirectory(directory)) ? 'file' : 'directory';
      return { kind: 'unreadable', what, message: describe(code) };
    }
  }
}

async function readOnce(directory: string): Promise<ConfigText> {
  const path = join(await resolveData(directory), CONFIG_FILE);
  const { size } = await stat(path);
  if (size > MAX_FILE_BYTES) return { kind: 'unreadable', what: 'file', message: 'is too large' };
  return { kind: 'text', text: await readFile(path, 'utf8') };
}

/** What a volume holds now, without its links. */
export async function resolveData(directory: string): Promise<string> {
  try {
    return resolve(directory, await readlink(join(directory, '..data')));
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'EINVAL') return directory;
    throw error;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error ? String(Reflect.get(error, 'code') ?? error.name) : 'unknown';
}

function describe(code: string): string {
  if (code === 'ENOENT') return 'does not exist';
  if (code === 'EACCES' || code === 'EPERM') return 'may not be read by this user';
  if (code === 'ENOTDIR' || code === 'EISDIR')
    return 'is not what it should be (file and directory mixed up)';
  return `cannot be read (${code})`;
}

/** Calls `onChange` after changes in the directory, and every few seconds in any case. */
export class DirectoryWatch {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #onChange: () => void;
  #watcher: FSWatcher | undefined;
  #debounce: TimerHandle | undefined;
  #poll: TimerHandle | undefined;
  #isClosed = false;

  constructor(directory: string, clock: Clock, onChange: () => void) {
    this.#directory = directory;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  start(): void {
    this.#watch();
    this.#poll = this.#clock.setTimer(POLL_MS, this.#tick, { unref: true });
  }

  close(): void {
    this.#isClosed = true;
    this.#poll?.cancel();
    this.#debounce?.cancel();
    this.#unwatch();
  }

  readonly #tick = (): void => {
    if (this.#isClosed) return;
    // A directory that was replaced, or came only now, has a new inode: the old watch is blind.
    this.#unwatch();
    this.#watch();
    this.#onChange();
    this.#poll = this.#clock.setTimer(POLL_MS, this.#tick, { unref: true });
  };

  #watch(): void {
    try {
      this.#watcher = watch(this.#directory, { persistent: false }, this.#changed);
      this.#watcher.on('error', () => this.#unwatch());
    } catch {
      // Not there, or no more inotify handles: the poll sees the change.
      this.#watcher = undefined;
    }
  }

  #unwatch(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  readonly #changed = (): void => {
    if (this.#isClosed) return;
    this.#debounce ??= this.#clock.setTimer(
      DEBOUNCE_MS,
      () => {
        this.#debounce = undefined;
        this.#onChange();
      },
      { unref: true },
    );
  };
}
