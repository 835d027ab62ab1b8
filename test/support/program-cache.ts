// Programs that only tests need, in the user's cache directory: brought once and found again. It
// never leaves a half-made directory behind: what is brought comes into a temporary directory
// beside the target, which is renamed when complete.

import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

export interface BuildOptions {
  /** Receives one progress line at a time; default: stderr. */
  readonly onProgress?: (line: string) => void;
}

export type Progress = (line: string) => void;

export function cacheRoot(env: NodeJS.ProcessEnv = process.env): string {
  const base =
    env.XDG_CACHE_HOME !== undefined && env.XDG_CACHE_HOME !== ''
      ? env.XDG_CACHE_HOME
      : join(homedir(), '.cache');
  return join(base, 'fairlead');
}

export async function buildInto(
  target: string,
  options: BuildOptions,
  build: (out: string, progress: Progress) => Promise<void>,
): Promise<void> {
  const startedAt = process.hrtime.bigint();
  const elapsedSeconds = (): number =>
    Number((process.hrtime.bigint() - startedAt) / 1_000_000_000n);
  const write = options.onProgress ?? ((line: string) => process.stderr.write(`${line}\n`));
  const progress: Progress = (line) => write(`[${String(elapsedSeconds()).padStart(4)} s] ${line}`);
  await mkdir(dirname(target), { recursive: true });
  const out = await mkdtemp(`${target}.building-`);
  try {
    await build(out, progress);
    await rename(out, target).catch((error: NodeJS.ErrnoException) => {
      // Another process finished the same build first: its result is as good as ours.
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
    progress(`done: ${target}`);
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}
