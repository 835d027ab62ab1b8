// Makes what the bench runs: the two C programs, the two JavaScript fixtures, the bundled program.
// The products live in a cache folder under node_modules, where the fixtures also find their
// packages. It never installs a compiler or changes a source.

import { spawn } from 'node:child_process';
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { build } from 'rolldown';

export const PROJECT_DIR = fileURLToPath(new URL('../../', import.meta.url));
const BENCH_DIR = fileURLToPath(new URL('./', import.meta.url));
const CACHE_DIR = join(PROJECT_DIR, 'node_modules/.cache/fairlead-bench');

export interface Programs {
  readonly fastup: string;
  readonly mcpload: string;
  readonly passThrough: string;
  readonly sdkV1Proxy: string;
  readonly fairlead: string;
}

export async function buildFixtures(): Promise<Omit<Programs, 'fairlead'>> {
  await mkdir(CACHE_DIR, { recursive: true });
  return {
    fastup: await compileC('fastup'),
    mcpload: await compileC('mcpload'),
    passThrough: await stripTypes('pass-through'),
    sdkV1Proxy: await stripTypes('sdk-v1-proxy'),
  };
}

/**
 * A fresh bundle, for figures of an old one would be believed; a copy in `dir`, so that a build
 * during the run changes nothing in it.
 */
export async function buildProduct(dir: string): Promise<string> {
  await run('npm', ['run', '--silent', 'build'], PROJECT_DIR);
  await cp(join(PROJECT_DIR, 'dist'), join(dir, 'dist'), { recursive: true });
  return join(dir, 'dist/fairlead.js');
}

async function compileC(name: string): Promise<string> {
  const program = join(CACHE_DIR, name);
  await run('gcc', ['-O2', '-w', '-o', program, join(BENCH_DIR, 'src', `${name}.c`)], BENCH_DIR);
  return program;
}

/** The references are timed as the JavaScript they are, not with the time that stripping takes. */
async function stripTypes(name: string): Promise<string> {
  const program = join(CACHE_DIR, `${name}.mjs`);
  await build({
    input: join(BENCH_DIR, `${name}.ts`),
    platform: 'node',
    external: /^[^./]/,
    output: { file: program },
  });
  return program;
}

/** Rejects with the command's own output when it fails. */
export function run(command: string, args: readonly string[], cwd: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream
        .setEncoding('utf8')
        .on('data', (text: string) => (output = `${output}${text}`.slice(-4000)));
    }
    child.once('error', (error) =>
      reject(new Error(`${command} cannot be started: ${error.message}`)),
    );
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${command} ${args.join(' ')} ended with ${code}\n${output}`));
    });
  });
}
