// The project's own source files as values, for the checks that look at text. Reads only; folders
// that are built, installed or generated at run time are left out.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const PROJECT_ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Path from the root with forward slashes, and the text. */
export type SourceTree = ReadonlyMap<string, string>;

const SKIPPED = new Set(['node_modules', 'dist', 'coverage', '.git', '.fairlead']);

/** Every .ts and .mjs file below `root`, in a fixed order. */
export async function readSourceTree(root: string): Promise<SourceTree> {
  const paths = await listSources(root, '');
  const entries = await Promise.all(
    paths.map(
      async (path): Promise<[string, string]> => [path, await readFile(join(root, path), 'utf8')],
    ),
  );
  return new Map(entries);
}

async function listSources(root: string, folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true });
  const found: string[] = [];
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory() && !SKIPPED.has(entry.name)) {
      found.push(...(await listSources(root, path)));
    } else if (entry.isFile() && /\.(ts|mjs)$/.test(entry.name)) {
      found.push(path);
    }
  }
  return found;
}
