// The suite `calls`: one upstream, all targets on it at once, and every round measures each of
// them in turn, so that a busy neighbour or a warm processor meets all alike. Figures are medians
// over the rounds. It ends every process and removes every file that it made.

import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';

import { systemClock } from '#core/clock.ts';

import type { BenchOptions, TargetName } from './bench-options.ts';
import { buildFixtures, buildProduct } from './build-programs.ts';
import { findNginx } from './find-nginx.ts';
import { judgeGates } from './gates.ts';
import { findFreePort } from './loopback-ports.ts';
import { measureLoad, QUICK_LOAD, THOROUGH_LOAD } from './measure-load.ts';
import { measureStarts } from './measure-starts.ts';
import { ProcessGroup } from './process-group.ts';
import { renderJson, renderTable } from './render-report.ts';
import { Results } from './results.ts';
import type { TargetContext } from './targets.ts';

/** A neighbour can spoil a try; what is really slower fails all of them. */
const MAX_TRIES = 3;

const say = (line: string): void => void process.stderr.write(`bench: ${line}\n`);

export async function runCallsSuite(options: BenchOptions): Promise<boolean> {
  await using cleanUp = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), 'fairlead-bench-'));
  cleanUp.defer(() => rm(dir, { recursive: true, force: true }));
  const group = cleanUp.use(new ProcessGroup());
  endWithRun(group, dir);

  const prepared = await prepare(options, group, dir);
  const maxTries = options.isQuick ? 1 : MAX_TRIES;
  for (let tries = 1; ; tries += 1) {
    warnWhenBusy();
    const results = await measure(options, prepared);
    const gates = judgeGates(results);
    const failed = gates.filter(({ verdict }) => verdict === 'fail');
    if (failed.length > 0 && tries < maxTries) {
      say(`try ${tries} of ${maxTries} failed: ${failed.map(({ title }) => title).join('; ')}`);
      continue;
    }
    const report = { title: describeRun(options, tries), results, gates };
    process.stdout.write(options.isJson ? renderJson(report) : `\n${renderTable(report)}`);
    return failed.length === 0;
  }
}

async function measure(
  { isQuick }: BenchOptions,
  { context, targets }: Prepared,
): Promise<Results> {
  const results = new Results();
  await measureStarts({ context, targets, results, rounds: isQuick ? 3 : 7, say });
  const plan = isQuick ? QUICK_LOAD : THOROUGH_LOAD;
  await measureLoad({ context, targets, results, plan, say });
  return results;
}

interface Prepared {
  readonly context: TargetContext;
  readonly targets: readonly TargetName[];
}

async function prepare(options: BenchOptions, group: ProcessGroup, dir: string): Promise<Prepared> {
  say('building ...');
  const fixtures = await buildFixtures();
  const fairlead = options.targets.includes('sidecar') ? await buildProduct(dir) : '';
  const programs = { ...fixtures, fairlead };
  const nginx = options.targets.includes('nginx') ? await findNginx(say) : undefined;
  const targets = options.targets.filter((name) => name !== 'nginx' || nginx !== undefined);
  const upstreamPort = await findFreePort();
  group.start({
    command: programs.fastup,
    args: [String(upstreamPort)],
    logFile: join(dir, 'fastup.log'),
  });
  return { context: { programs, nginx, group, clock: systemClock, dir, upstreamPort }, targets };
}

/** An interrupted run leaves nothing behind that would be measured, or in the way, next time. */
function endWithRun(group: ProcessGroup, dir: string): void {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.once(signal, () => {
      group.killNow();
      rmSync(dir, { recursive: true, force: true });
      process.exit(code);
    });
  }
}

/** Neighbours cost every call cache misses, and the targets not alike. */
function warnWhenBusy(): void {
  const load = loadavg()[0] ?? 0;
  const cores = availableParallelism();
  if (load > cores / 2)
    say(`the machine is busy (load ${load.toFixed(1)} on ${cores} cores): figures will be noisy`);
}

function describeRun({ isQuick }: BenchOptions, tries: number): string {
  const machine = `${cpus()[0]?.model ?? 'unknown processor'}, ${availableParallelism()} cores`;
  const how = isQuick ? '; quick' : tries > 1 ? `; try ${tries} of ${MAX_TRIES}` : '';
  return `tools/call through each target, JSON answers of 0.4 KB; Node ${process.versions.node}; ${machine}${how}`;
}
