// The command line of the bench: the first word names the suite, the rest are options.
// Pure; it never starts or reads anything.

import { parseArgs } from 'node:util';

export const SUITE_NAMES = ['calls'] as const;
export type SuiteName = (typeof SUITE_NAMES)[number];

/** In the order of the table: the floor, the two references, and the program under test. */
export const TARGET_NAMES = ['nginx', 'pass-through', 'sdk-v1-proxy', 'sidecar'] as const;
export type TargetName = (typeof TARGET_NAMES)[number];

export interface BenchOptions {
  readonly suite: SuiteName;
  readonly isQuick: boolean;
  readonly isJson: boolean;
  readonly targets: readonly TargetName[];
}

export type BenchCommand =
  | { readonly kind: 'run'; readonly options: BenchOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'usage'; readonly message: string };

export const BENCH_HELP = `Usage: npm run bench -- [SUITE] [options]

Suites
  calls          tools/call through the sidecar, nginx, a bare Node pass-through and a proxy
                 made with the MCP SDK v1, on one upstream, alternating in one run (default)

Options
  --quick        shorter windows and fewer rounds: for a first look, not for a verdict
  --only NAME    measure this target only; may be repeated (${TARGET_NAMES.join(', ')})
  --json         one JSON document on stdout instead of the table
  --help         this text

Examples
  npm run bench
  npm run bench -- calls --quick
  npm run bench -- --only pass-through --only sidecar

Exit code: 0 when every gate that could be judged holds, 1 when one fails or a target could not
be measured, 64 for wrong usage.
`;

export function parseBenchOptions(argv: readonly string[]): BenchCommand {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true, default: [] },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    return { kind: 'usage', message: error instanceof Error ? error.message : String(error) };
  }
  const { values, positionals } = parsed;
  if (values.help) return { kind: 'help' };
  if (positionals.length > 1)
    return { kind: 'usage', message: `one suite at a time, not ${positionals.join(' ')}` };
  const word = positionals[0] ?? 'calls';
  const suite = SUITE_NAMES.find((name) => name === word);
  if (suite === undefined)
    return {
      kind: 'usage',
      message: `no suite ${JSON.stringify(word)}; there is ${SUITE_NAMES.join(', ')}`,
    };
  const unknown = values.only.find((name) => !TARGET_NAMES.some((target) => target === name));
  if (unknown !== undefined)
    return {
      kind: 'usage',
      message: `no target ${JSON.stringify(unknown)}; there is ${TARGET_NAMES.join(', ')}`,
    };
  const targets = TARGET_NAMES.filter(
    (name) => values.only.length === 0 || values.only.includes(name),
  );
  return { kind: 'run', options: { suite, isQuick: values.quick, isJson: values.json, targets } };
}
