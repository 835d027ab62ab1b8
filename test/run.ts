// Runs the tests by layer and says in one last line what came out.
//   node test/run.ts unit|apiserver|proxies|node|all [PATH_PART…] [-- NODE_TEST_FLAG…]
// Layers are folders: test/apiserver needs a real etcd and kube-apiserver, test/proxies real Squid,
// smokescreen and CoreDNS, test/node a whole Kubernetes node, everything else only Node. `unit` takes the apiserver layer along when its
// programs are in the cache already.

import { glob } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import {
  buildControlPlane,
  findControlPlane,
} from '#test/support/control-plane/build-control-plane.ts';
import { bringProxyLayer, makeProxyNamespace } from '#test/support/proxies/proxy-layer.ts';
import { judgeFile } from '#test/support/test-run/file-result.ts';
import { runFile } from '#test/support/test-run/run-file.ts';
import {
  addTotals,
  LAYERS,
  NO_TESTS,
  parseArguments,
  renderSeconds,
  renderTotals,
  selectFiles,
  USAGE,
} from '#test/support/test-run/run-plan.ts';
import type { Layer, RunRequest, Totals } from '#test/support/test-run/run-plan.ts';

const INTERRUPTED = 130;
const stop = new AbortController();

const ROOT = fileURLToPath(new URL('..', import.meta.url));

interface LayerLimits {
  /** Test files at once. The real control planes measure and race clocks: one at a time. */
  readonly concurrency: number;
  /** A file that takes longer hangs. */
  readonly timeoutMs: number;
}

const LIMITS: Readonly<Record<Layer, LayerLimits>> = {
  unit: { concurrency: 2, timeoutMs: 120_000 },
  apiserver: { concurrency: 1, timeoutMs: 900_000 },
  // Each file has a network namespace of its own.
  proxies: { concurrency: 1, timeoutMs: 300_000 },
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
    if (stop.signal.aborted) return INTERRUPTED;
    totals = addTotals(totals, layerTotals);
    const took = renderSeconds(performance.now() - layerStartedAt);
    summaries.push(`${layer}: ${selected.length} files, ${renderTotals(layerTotals)}, ${took}`);
  }
  if (summaries.length === 0 && request.pathParts.length > 0) {
    process.stderr.write(`no test file matches ${request.pathParts.join(' or ')}\n`);
    return 64;
  }
  process.stdout.write(`\n${summaries.join('\n')}\n`);
  process.stdout.write(`took ${renderSeconds(performance.now() - startedAt)}\n`);
  process.stdout.write(`${renderTotals(totals)}\n`);
  return totals.failed === 0 ? 0 : 1;
}

function layersOf({ layer }: RunRequest): readonly Layer[] {
  if (layer === 'all') return LAYERS;
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
  if (layer === 'proxies') {
    const reason = await bringProxyLayer((line) => process.stdout.write(`${line}\n`));
    if (reason !== undefined) {
      process.stdout.write(`left out: the tests against real proxies: ${reason}\n`);
      return { ...NO_TESTS, skipped: files.length };
    }
  }
  const { concurrency, timeoutMs } = LIMITS[layer];
  const queue = [...files];
  let totals = NO_TESTS;
  const work = async (): Promise<void> => {
    for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
      using namespace = layer === 'proxies' ? makeProxyNamespace() : undefined;
      const end = await runFile(path, {
        directory: ROOT,
        timeoutMs,
        nodeFlags,
        signal: stop.signal,
        ...(namespace === undefined ? {} : { wrap: (command) => namespace.inside(command) }),
      });
      if (stop.signal.aborted) return;
      const result = judgeFile(end);
      process.stdout.write(result.text);
      totals = addTotals(totals, result.totals);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return totals;
}

// Test files run in groups of their own, so they do not get the terminal's signal themselves.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    stop.abort();
    process.exitCode = INTERRUPTED;
    // Time to remove scratch directories; a build of the API server would go on for minutes.
    setTimeout(() => process.exit(), 1000).unref();
  });
}

const exitCode = await main();
if (!stop.signal.aborted) process.exitCode = exitCode;
