// A Python environment with pinned packages in the user's cache directory, made once and reused.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Path of a python3 that can import the packages; makes the environment when it is missing. */
export function pythonWith(packages: readonly string[]): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const directory = join(
    cache,
    'fairlead',
    'python',
    packages.join('+').replaceAll(/[^A-Za-z0-9.+=-]/g, '_'),
  );
  const python = join(directory, 'bin', 'python3');
  const marker = join(directory, 'complete');
  if (existsSync(marker)) return python;
  process.stderr.write(`Making a Python environment with ${packages.join(', ')} ...\n`);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  execFileSync('python3', ['-m', 'venv', directory], { stdio: ['ignore', 'ignore', 'inherit'] });
  execFileSync(
    python,
    ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  mkdirSync(`${marker}.new`);
  renameSync(`${marker}.new`, marker);
  return python;
}
