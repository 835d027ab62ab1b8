// The programs of a node that Kubernetes does not bring itself, from Debian: installed when they
// are missing, as the node tests run as root anyway.

import { runCommand, tryCommand } from './run-command.ts';

const PACKAGES = ['containerd', 'runc', 'containernetworking-plugins', 'iproute2', 'nftables'];

/** Why a whole node cannot be started here; undefined when it can. */
export function whyNoNode(): string | undefined {
  if (process.platform !== 'linux') return 'a Kubernetes node needs Linux';
  return process.getuid?.() === 0 ? undefined : 'a Kubernetes node needs root';
}

export async function installNodePackages(progress: (line: string) => void): Promise<void> {
  const missing: string[] = [];
  for (const name of PACKAGES) {
    if ((await tryCommand(['dpkg', '-s', name])).code !== 0) missing.push(name);
  }
  if (missing.length === 0) return;
  progress(`installing Debian packages: ${missing.join(' ')}`);
  const env = ['env', 'DEBIAN_FRONTEND=noninteractive'];
  const install = [
    ...env,
    'apt-get',
    'install',
    '-y',
    '-qq',
    '--no-install-recommends',
    ...missing,
  ];
  if ((await tryCommand(install)).code === 0) return;
  await runCommand([...env, 'apt-get', 'update', '-qq']);
  await runCommand(install);
}
