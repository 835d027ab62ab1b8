// `npm run bench -- [SUITE] [options]`: measures the built program against its peers in one run
// and judges the gates, which are ratios, so that they hold on any machine. Linux only.
// It never reports a window in which a call failed.
//
// Each suite is one module; a new one is a line in SUITES.

import {
  BENCH_HELP,
  parseBenchOptions,
  type BenchOptions,
  type SuiteName,
} from './bench-options.ts';

/** Runs to the end and says whether every gate held. */
export type Suite = (options: BenchOptions) => Promise<boolean>;

const SUITES: Readonly<Record<SuiteName, () => Promise<Suite>>> = {
  calls: async () => (await import('./calls-suite.ts')).runCallsSuite,
};

async function main(argv: readonly string[]): Promise<number> {
  const parsed = parseBenchOptions(argv);
  if (parsed.kind === 'help') {
    process.stdout.write(BENCH_HELP);
    return 0;
  }
  if (parsed.kind === 'usage') {
    process.stderr.write(`bench: ${parsed.message}\nTry "npm run bench -- --help".\n`);
    return 64;
  }
  if (process.platform !== 'linux') {
    process.stderr.write('bench: needs Linux, because CPU time is read from /proc\n');
    return 1;
  }
  const runSuite = await SUITES[parsed.options.suite]();
  return (await runSuite(parsed.options)) ? 0 : 1;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
