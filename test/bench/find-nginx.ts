// Finds nginx, the floor of the table, or installs Debian's package when that is possible.
// Going on without it is fine: it is printed for comparison and no gate needs it.

import { spawnSync } from 'node:child_process';

import { run } from './build-programs.ts';

const CANDIDATES = ['nginx', '/usr/sbin/nginx'];

export async function findNginx(say: (line: string) => void): Promise<string | undefined> {
  const found = locate();
  if (found !== undefined) return found;
  if (process.getuid?.() !== 0) {
    say('nginx is not installed and only root can install it: going on without it');
    return undefined;
  }
  say('installing nginx-light with apt-get ...');
  try {
    await install().catch(async () => {
      await run('apt-get', ['update', '-qq'], '/');
      await install();
    });
  } catch {
    say('apt-get could not install nginx-light: going on without nginx');
    return undefined;
  }
  return locate();
}

function install(): Promise<void> {
  return run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'nginx-light'], '/');
}

function locate(): string | undefined {
  return CANDIDATES.find((path) => spawnSync(path, ['-v'], { stdio: 'ignore' }).status === 0);
}
