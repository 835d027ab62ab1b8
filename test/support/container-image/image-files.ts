// The files of the image as its Dockerfile lists them, taken from this machine: what the build
// stage would hold is found here. A source that is not known here is an error: a file that the
// Dockerfile adds must be thought of in the test too.

import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { parseFinalStage } from './dockerfile.ts';
import type { CopyInstruction, FinalStage } from './dockerfile.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);

export interface ImageFile {
  /** Absolute path on this machine. */
  readonly source: string;
  /** Absolute path in the image. */
  readonly target: string;
  readonly mode: number;
}

export interface ImageContents {
  readonly stage: FinalStage;
  readonly files: readonly ImageFile[];
}

/** `dist` is a finished build. */
export async function gatherImageContents(dist: string): Promise<ImageContents> {
  const stage = parseFinalStage(await readFile(join(ROOT, 'Dockerfile'), 'utf8'));
  const node = await realpath(process.execPath);
  const buildStage: Readonly<Record<string, () => Promise<readonly Located[]>>> = {
    '/libraries/': () => librariesOf(node),
    '/usr/local/bin/node': () => Promise.resolve([{ source: node, below: '' }]),
    '/etc/ssl/certs/ca-certificates.crt': () =>
      Promise.resolve([{ source: '/etc/ssl/certs/ca-certificates.crt', below: '' }]),
    '/src/dist/': () => filesBelow(dist),
  };
  const files: ImageFile[] = [];
  for (const copy of stage.copies) {
    for (const source of copy.sources) {
      const locate = copy.stage === undefined ? () => fromContext(source) : buildStage[source];
      if (locate === undefined) throw new Error(`no place is known here for ${source}`);
      for (const located of await locate()) files.push(await imageFile(copy, source, located));
    }
  }
  return { stage, files };
}

/** A file on this machine, and its path below the copied folder; empty for a single file. */
interface Located {
  readonly source: string;
  readonly below: string;
}

async function librariesOf(program: string): Promise<readonly Located[]> {
  const { stdout } = await run('ldd', [program]);
  const paths = stdout.match(/\/[^ ]+/g) ?? [];
  return paths.map((path) => ({ source: path, below: path }));
}

async function fromContext(source: string): Promise<readonly Located[]> {
  const path = join(ROOT, source);
  return (await stat(path)).isDirectory() ? filesBelow(path) : [{ source: path, below: '' }];
}

async function filesBelow(folder: string): Promise<readonly Located[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ source: path, below: path.slice(folder.length) }));
}

async function imageFile(
  { target }: CopyInstruction,
  source: string,
  located: Located,
): Promise<ImageFile> {
  const isFolder = located.below !== '';
  const intoFolder = target.endsWith('/') ? posix.join(target, posix.basename(source)) : target;
  const path = await realpath(located.source);
  return {
    source: path,
    target: isFolder ? posix.join('/', target, located.below) : intoFolder,
    mode: (await stat(path)).mode & 0o100 ? 0o755 : 0o644,
  };
}

/** Writes the files below `directory`, as the root of a container would hold them. */
export async function writeImageRoot(
  files: readonly ImageFile[],
  directory: string,
): Promise<void> {
  for (const { source, target, mode } of files) {
    const path = join(directory, target);
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    await copyFile(source, path);
    await chmod(path, mode);
  }
}
