// Debian packages, and those of their dependencies that the machine lacks, unpacked into a
// directory. It installs nothing and runs no package script.

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { run } from '#test/support/go-module.ts';
import { tryCommand } from '#test/support/node-cluster/run-command.ts';
import type { Progress } from '#test/support/program-cache.ts';

export async function unpackDebianPackages(
  names: readonly string[],
  { out, progress }: { readonly out: string; readonly progress: Progress },
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-debian-'));
  try {
    const wanted = new Set([...names, ...(await missingPackages(names))]);
    await run(['apt-get', 'download', '-qq', ...wanted], {
      directory,
      label: `downloading Debian packages: ${[...wanted].join(' ')}`,
      progress,
    });
    for (const file of await readdir(directory)) {
      await run(['dpkg', '-x', join(directory, file), out], { directory });
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function missingPackages(names: readonly string[]): Promise<readonly string[]> {
  const simulate = ['apt-get', 'install', '-s', '--no-install-recommends', ...names];
  let simulated = await tryCommand(simulate);
  if (simulated.code !== 0) {
    // A machine that has no package lists yet.
    await tryCommand(['apt-get', 'update', '-qq']);
    simulated = await tryCommand(simulate);
  }
  if (simulated.code !== 0)
    throw new Error(`no Debian packages ${names.join(' ')}: ${simulated.stderr}`);
  return parseNewPackages(simulated.stdout);
}

/** Pure. `Inst name [installed] (new …)` is an upgrade, `Inst name (new …)` a package not there. */
export function parseNewPackages(simulation: string): readonly string[] {
  return [...simulation.matchAll(/^Inst (\S+) \(/gm)].flatMap(([, name]) => name ?? []);
}
