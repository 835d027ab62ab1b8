// A published program in the user's cache directory, installed once and reused: for programs that
// a test needs as they are, and that the project itself does not depend on.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Path of `bin` of the package, an exact version like `@scope/name@1.2.3`. */
export function npmProgram(specifier: string, bin: string): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const directory = join(cache, 'fairlead', 'npm', specifier.replaceAll(/[^A-Za-z0-9.@-]/g, '_'));
  const program = join(directory, 'node_modules', '.bin', bin);
  const marker = join(directory, 'complete');
  if (existsSync(marker)) return program;
  process.stderr.write(`Installing ${specifier} ...\n`);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const flags = ['--prefix', directory, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund'];
  execFileSync('npm', ['install', ...flags, specifier], { stdio: ['ignore', 'ignore', 'ignore'] });
  mkdirSync(marker);
  return program;
}
