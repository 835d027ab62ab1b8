// `npm run test:egress -- FILE`: runs a file of adversarial egress cases against the product's own
// guard. It knows kinds of cases, never a single case.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

import { parseEgressCorpus } from './corpus-file.ts';
import type { EgressCorpus } from './corpus-file.ts';
import { renderFailure, renderSum } from './render-results.ts';
import { runCorpus } from './run-corpus.ts';

const USAGE = `Usage: npm run test:egress -- FILE

Runs every case of FILE (the format of test/corpus/egress.json) against the product's own guard,
redirect, discovery and document code. The resolver and the socket's connect are the only things
that are replaced; behind them are real loopback listeners that write down what arrives.

Prints each failure, and "N passed, N failed" as the last line.
Exit codes: 0 all passed, 1 a case failed, 64 the command line or the file is wrong.
`;
const WRONG_USAGE = 64;

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(USAGE);
    return 0;
  }
  const [path, ...rest] = args;
  if (path === undefined || rest.length > 0 || path.startsWith('-')) {
    process.stderr.write(USAGE);
    return WRONG_USAGE;
  }
  // npm runs scripts in the package's root; the path is meant from where npm was called.
  const corpus = readCorpus(resolve(process.env['INIT_CWD'] ?? '', path));
  if (corpus === undefined) return WRONG_USAGE;
  const results = await runCorpus(corpus);
  for (const result of results) {
    if (result.differences.length > 0) process.stdout.write(`${renderFailure(result)}\n\n`);
  }
  process.stdout.write(`${renderSum(results)}\n`);
  return results.every(({ differences }) => differences.length === 0) ? 0 : 1;
}

function readCorpus(path: string): EgressCorpus | undefined {
  try {
    return parseEgressCorpus(readFileSync(path, 'utf8'));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`${path} is not a file of egress cases: ${reason}\n`);
    return undefined;
  }
}

process.exitCode = await main(process.argv.slice(2));
