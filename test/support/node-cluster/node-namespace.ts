// The network namespace of a node: it has no way out, so nothing that runs in it reaches the
// world, and nothing of the machine's network is touched. Removing it ends what still runs in it.

import { readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

import { NODE_ADDRESS } from './node-files.ts';
import { runCommand, tryCommand } from './run-command.ts';

export interface NodeNamespace {
  readonly name: string;
  /** The command line that runs `command` inside. */
  inside(command: readonly string[]): string[];
  remove(): Promise<void>;
}

/** Of the machine's namespaces those that were there before the node's pods. */
const BEFORE_FILE = 'namespaces.before';

/** `directory` is the node's; its name becomes the namespace's. */
export async function makeNodeNamespace(directory: string): Promise<NodeNamespace> {
  const name = basename(directory);
  await writeFile(join(directory, BEFORE_FILE), (await namespaceNames()).join('\n'));
  // Not `ip netns exec`: it mounts another /sys, in which the kubelet finds no cgroups.
  const inside = (command: readonly string[]): string[] => [
    'nsenter',
    `--net=/run/netns/${name}`,
    ...command,
  ];
  await runCommand(['ip', 'netns', 'add', name]);
  const namespace: NodeNamespace = { name, inside, remove: () => removeNodeNamespaces(directory) };
  try {
    await runCommand(inside(['ip', 'link', 'set', 'lo', 'up']));
    await runCommand(inside(['ip', 'link', 'add', 'node0', 'type', 'bridge']));
    await runCommand(inside(['ip', 'addr', 'add', `${NODE_ADDRESS}/24`, 'dev', 'node0']));
    await runCommand(inside(['ip', 'link', 'set', 'node0', 'up']));
    // Leads nowhere: Service addresses need some route before kube-proxy rewrites them.
    await runCommand(
      inside(['ip', 'route', 'add', 'default', 'via', '10.98.0.254', 'dev', 'node0']),
    );
    await runCommand(['ip', 'netns', 'exec', name, 'sysctl', '-qw', 'net.ipv4.ip_forward=1']);
    return namespace;
  } catch (error) {
    await namespace.remove();
    throw error;
  }
}

/** The node's own, and those that the network plugin made for its pods since. */
export async function removeNodeNamespaces(directory: string): Promise<void> {
  const name = basename(directory);
  const text = await readFile(join(directory, BEFORE_FILE), 'utf8').catch(() => undefined);
  if (text === undefined) return;
  const before = new Set(text.split('\n'));
  const made = (await namespaceNames()).filter((other) => !before.has(other));
  for (const other of made.filter(
    (candidate) => candidate === name || candidate.startsWith('cni-'),
  )) {
    const { stdout } = await tryCommand(['ip', 'netns', 'pids', other]);
    for (const pid of stdout.split('\n').filter((line) => line !== '')) killQuietly(Number(pid));
    await tryCommand(['ip', 'netns', 'del', other]);
  }
}

async function namespaceNames(): Promise<string[]> {
  return readdir('/run/netns').catch(() => []);
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
