// `npm run check`: everything that can be said about the sources without running them. Every step
// runs even when an earlier one failed, so that one run shows all problems.

import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { findNameFaults } from './file-names.ts';
import { aliasedFolders, findDirectionFaults } from './import-directions.ts';
import { findDoorFaults } from './one-door.ts';
import { PROJECT_ROOT, readSourceTree } from './source-tree.ts';
import type { SourceTree } from './source-tree.ts';
import type { Fault } from './syntax-tree.ts';

interface StepResult {
  readonly isGood: boolean;
  /** What to show below the line when the step failed. */
  readonly report: string;
}

interface Step {
  readonly name: string;
  readonly run: () => Promise<StepResult>;
}

const BIN = join(PROJECT_ROOT, 'node_modules', '.bin');

function steps(tree: SourceTree, packageJson: unknown): readonly Step[] {
  const faults = (find: (sources: SourceTree) => Fault[]) => (): Promise<StepResult> =>
    Promise.resolve(faultResult(find(tree)));
  return [
    { name: 'types', run: () => command('tsc', ['-p', '.']) },
    { name: 'lint', run: () => command('oxlint', ['--type-aware', '--format=unix']) },
    { name: 'one door per danger', run: faults(findDoorFaults) },
    {
      name: 'import directions',
      run: faults((sources) => findDirectionFaults(sources, aliasedFolders(packageJson))),
    },
    { name: 'names', run: faults(findNameFaults) },
    { name: 'format', run: checkFormat },
    {
      name: 'generated files',
      run: () => command(process.execPath, [join(PROJECT_ROOT, 'tools', 'generate.ts'), '--check']),
    },
  ];
}

/** The names of the files are enough: `npm run format` does the rest. */
async function checkFormat(): Promise<StepResult> {
  const result = await command('biome', ['format', '--colors=off', '--max-diagnostics=none', '.']);
  const files = [...result.report.matchAll(/^(\S+) format ━/gm)].map(({ 1: file = '' }) => file);
  if (result.isGood || files.length === 0) return result;
  return { isGood: false, report: [...files, 'run npm run format'].join('\n') };
}

function faultResult(faults: readonly Fault[]): StepResult {
  const lines = faults.map(({ path, line, message }) => `${path}:${line} ${message}`);
  return { isGood: faults.length === 0, report: lines.join('\n') };
}

function command(program: string, args: readonly string[]): Promise<StepResult> {
  const path = program.includes('/') ? program : join(BIN, program);
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, { cwd: PROJECT_ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
    let report = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        report += chunk;
      });
    }
    child.once('error', reject);
    child.once('close', (code) => resolve({ isGood: code === 0, report: report.trim() }));
  });
}

async function main(): Promise<void> {
  const tree = await readSourceTree(PROJECT_ROOT);
  const packageJson: unknown = JSON.parse(
    await readFile(join(PROJECT_ROOT, 'package.json'), 'utf8'),
  );
  const failed: string[] = [];
  for (const { name, run } of steps(tree, packageJson)) {
    const startedAt = performance.now();
    const { isGood, report } = await run();
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    process.stdout.write(
      `${isGood ? 'ok  ' : 'FAIL'} ${name.padEnd(20)} ${seconds.padStart(5)} s\n`,
    );
    if (isGood) continue;
    failed.push(name);
    process.stdout.write(`${report.replaceAll(/^/gm, '     ')}\n`);
  }
  if (failed.length > 0) process.stdout.write(`check failed: ${failed.join(', ')}\n`);
  process.exitCode = failed.length === 0 ? 0 : 1;
}

await main();
