// Runs the tests by layer and says in one last line what came out.
//   node test/run.ts unit|apiserver|node|all [PATH_PART…] [-- NODE_TEST_FLAG…]
// Layers are folders: test/apiserver needs a real etcd and kube-apiserver, test/node a whole
// Kubernetes node, everything else only Node. `unit` takes the apiserver layer along when its
// programs are in the cache already.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { glob, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import {
  buildControlPlane,
  findControlPlane,
} from '#test/support/control-plane/build-control-plane.ts';
import {
  addTotals,
  NO_TESTS,
  parseArguments,
  readTotals,
  renderSeconds,
  renderTotals,
  selectFiles,
  USAGE,
} from '#test/support/test-run/run-plan.ts';
import type { Layer, RunRequest, Totals } from '#test/support/test-run/run-plan.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const REPORTERS = join(ROOT, 'test', 'support', 'test-run');

interface LayerLimits {
  /** Test files at once. The real control planes measure and race clocks: one at a time. */
  readonly concurrency: number;
  /** A file that takes longer hangs. */
  readonly timeoutMs: number;
}

const LIMITS: Readonly<Record<Layer, LayerLimits>> = {
  unit: { concurrency: 2, timeoutMs: 120_000 },
  apiserver: { concurrency: 1, timeoutMs: 900_000 },
  node: { concurrency: 1, timeoutMs: 1_200_000 },
};

async function main(): Promise<number> {
  const request = parseArguments(process.argv.slice(2));
  if (request === undefined) {
    process.stderr.write(`${USAGE}\n`);
    return 64;
  }
  const startedAt = performance.now();
  const files: string[] = [];
  for await (const path of glob('test/**/*.test.ts', { cwd: ROOT })) files.push(path);
  const summaries: string[] = [];
  let totals = NO_TESTS;
  for (const layer of layersOf(request)) {
    const selected = selectFiles(files, layer, request.pathParts);
    if (selected.length === 0) continue;
    const layerStartedAt = performance.now();
    const layerTotals = await runLayer(layer, selected, request.nodeFlags);
    totals = addTotals(totals, layerTotals);
    const took = renderSeconds(performance.now() - layerStartedAt);
    summaries.push(`${layer}: ${selected.length} files, ${renderTotals(layerTotals)}, ${took}`);
  }
  if (summaries.length === 0) {
    process.stderr.write(`no test file matches ${request.pathParts.join(' or ')}\n`);
    return 64;
  }
  process.stdout.write(`\n${summaries.join('\n')}\n`);
  process.stdout.write(`took ${renderSeconds(performance.now() - startedAt)}\n`);
  process.stdout.write(`${renderTotals(totals)}\n`);
  return totals.failed === 0 ? 0 : 1;
}

function layersOf({ layer }: RunRequest): readonly Layer[] {
  if (layer === 'all') return ['unit', 'apiserver', 'node'];
  if (layer !== 'unit') return [layer];
  if (findControlPlane() !== undefined) return ['unit', 'apiserver'];
  process.stdout.write(
    'left out: the tests against a real API server; "npm run test:apiserver" builds it (once, some minutes) and runs them\n',
  );
  return ['unit'];
}

async function runLayer(
  layer: Layer,
  files: readonly string[],
  nodeFlags: readonly string[],
): Promise<Totals> {
  process.stdout.write(`\n${layer}: ${files.length} files\n`);
  if (layer === 'apiserver') {
    await buildControlPlane({ onProgress: (line) => process.stdout.write(`${line}\n`) });
  }
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-test-'));
  try {
    const summary = join(directory, 'summary.json');
    const exitCode = await runNodeTest(layer, [...nodeFlags, ...reporterFlags(summary), ...files]);
    return readTotals(await readFile(summary, 'utf8').catch(() => ''), exitCode);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function reporterFlags(summary: string): string[] {
  const reporter = (name: string): string => pathToFileURL(join(REPORTERS, `${name}.ts`)).href;
  return [
    `--test-reporter=${reporter('progress-reporter')}`,
    '--test-reporter-destination=stdout',
    `--test-reporter=${reporter('summary-reporter')}`,
    `--test-reporter-destination=${summary}`,
  ];
}

async function runNodeTest(layer: Layer, args: readonly string[]): Promise<number | null> {
  const { concurrency, timeoutMs } = LIMITS[layer];
  // A file whose tests have ended but that keeps something open must not hold up the run for ever.
  const flags = [`--test-concurrency=${concurrency}`, `--test-timeout=${timeoutMs}`, '--test-force-exit'];
  const child = spawn(process.execPath, ['--test', ...flags, ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
  process.on('SIGINT', forward).on('SIGTERM', forward);
  const [code] = (await once(child, 'exit')) as [number | null];
  process.off('SIGINT', forward).off('SIGTERM', forward);
  return code;
}

process.exitCode = await main();
