// Writes every generated file, or with --check only compares and names the ones that drifted.
// What they contain is decided where their source is; nothing is composed here.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { generatedFiles } from '#crds/generate.ts';

import { renderErrorTable } from './render-error-table.ts';
import { renderMetricTable } from './render-metric-table.ts';
import { PROJECT_ROOT } from './source-tree.ts';

/** Paths from the project's root, and their text. */
async function allGeneratedFiles(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ...(await generatedFiles()),
    ['docs/errors.md', renderErrorTable()],
    ['docs/metrics.md', await renderMetricTable()],
  ]);
}

/** Paths of generated files whose text on disk is not what the sources say now. */
export async function driftedFiles(root: string = PROJECT_ROOT): Promise<string[]> {
  const drifted: string[] = [];
  for (const [path, text] of await allGeneratedFiles()) {
    if ((await readIfThere(join(root, path))) !== text) drifted.push(path);
  }
  return drifted;
}

async function writeGeneratedFiles(): Promise<void> {
  const files = await allGeneratedFiles();
  for (const path of await driftedFiles()) {
    const target = join(PROJECT_ROOT, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, files.get(path) ?? '');
    process.stdout.write(`wrote ${path}\n`);
  }
  process.stdout.write(`${files.size} generated files are up to date\n`);
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

if (import.meta.main) {
  if (process.argv.includes('--check')) {
    const drifted = await driftedFiles();
    for (const path of drifted) process.stderr.write(`${path} is stale: run npm run generate\n`);
    process.exitCode = drifted.length === 0 ? 0 : 1;
  } else {
    await writeGeneratedFiles();
  }
}
