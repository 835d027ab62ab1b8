// The directory of a node, named after the process that runs it, so that a later run can clear away
// what a killed one left: mounts, namespaces, processes and files.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { removeNodeNamespaces } from './node-namespace.ts';
import { tryCommand } from './run-command.ts';

const PREFIX = 'fairlead-node-';

export function makeNodeDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
}

export async function removeNodeDirectory(directory: string): Promise<void> {
  const mounts = (await readFile('/proc/mounts', 'utf8')).split('\n');
  const targets = mounts.map((line) => line.split(' ')[1] ?? '');
  const own = targets.filter((target) => target.startsWith(`${directory}/`));
  for (const target of own.toSorted().toReversed()) await tryCommand(['umount', '-l', target]);
  await rm(directory, { recursive: true, force: true });
  // Only empty ones can be removed, so a node that runs beside this one keeps its own.
  const groups = ['find', '/sys/fs/cgroup', '-depth', '-type', 'd', '-path', '*/kubepods*'];
  await tryCommand([...groups, '-exec', 'rmdir', '{}', '+']);
}

export async function removeStaleNodes(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid === undefined || isRunning(Number(pid))) continue;
    const directory = join(tmpdir(), name);
    await removeNodeNamespaces(directory);
    await removeNodeDirectory(directory);
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
