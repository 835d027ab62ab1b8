// Builds programs from their Go modules, and reads single files of modules. Modules come through
// the Go module proxy and are checked against its checksum database; nothing is installed.

import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Progress } from './program-cache.ts';

export interface GoProgram {
  readonly label: string;
  /** The path of the command's package. */
  readonly main: string;
  /** Without the `v`. */
  readonly version: string;
}

export async function buildGoProgram(
  { label, main, version }: GoProgram,
  { out, progress }: { readonly out: string; readonly progress: Progress },
): Promise<void> {
  await inModule('module fairlead.dev/test/program\n\ngo 1.26.0\n', async (directory) => {
    const get = ['go', 'get', `${main}@v${version}`];
    await run(get, { directory, label: `resolving ${label} ${version}`, progress });
    const build = ['go', 'build', '-trimpath', '-ldflags', '-s -w', '-o', out, main];
    await run(build, { directory, label: `building ${label} ${version}`, progress });
  });
}

export async function readModuleFile(module: string, path: string): Promise<string> {
  const download = ['go', 'mod', 'download', '-json', module];
  const described: unknown = JSON.parse(await run(download, { directory: tmpdir() }));
  const isDescribed = typeof described === 'object' && described !== null && 'Dir' in described;
  if (!isDescribed || typeof described.Dir !== 'string') {
    throw new Error(`go mod download named no directory for ${module}`);
  }
  return readFile(join(described.Dir, path), 'utf8');
}

export async function inModule(
  goMod: string,
  use: (directory: string) => Promise<void>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-build-'));
  try {
    await writeFile(join(directory, 'go.mod'), goMod);
    await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

export interface RunOptions {
  readonly directory: string;
  readonly label?: string;
  readonly progress?: Progress;
}

/** Runs a command politely (nice), says so every 20 s while it runs, and returns its stdout. */
export async function run(command: readonly string[], options: RunOptions): Promise<string> {
  const { directory, label = command.join(' '), progress = () => undefined } = options;
  progress(label);
  const heartbeat = setInterval(() => progress(`still ${label}`), 20_000);
  const child = spawn('nice', ['-n', '10', ...command], {
    cwd: directory,
    env: { ...process.env, GOFLAGS: '-buildvcs=false -mod=mod', CGO_ENABLED: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr
    .setEncoding('utf8')
    .on('data', (chunk: string) => (stderr = (stderr + chunk).slice(-8_000)));
  try {
    const code = await new Promise<number | null>((resolve, reject) =>
      child.once('error', reject).once('close', resolve),
    );
    if (code !== 0)
      throw new Error(`${command.slice(0, 3).join(' ')} ended with ${String(code)}:\n${stderr}`);
    return stdout;
  } finally {
    clearInterval(heartbeat);
  }
}
