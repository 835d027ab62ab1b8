// A network namespace of a test's own: private addresses and host names that exist nowhere else.
// Needs root and iproute2. Everything that it made is gone after disposal.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';

export interface NetNamespaceOptions {
  /** Addresses on its one inner interface, e.g. `10.77.0.2/24`. */
  readonly addresses: readonly string[];
  /** Host name to address; seen through the system resolver by programs started in it. */
  readonly hosts: Readonly<Record<string, string>>;
  /**
   * Every unicast address there is, public, private and special, is this namespace's own: whoever
   * listens on all of them sees each connection that is let out, wherever it was meant to go.
   */
  readonly isEveryAddressLocal?: boolean;
}

export interface NetNamespace extends Disposable {
  readonly name: string;
  /** The command line that runs `command` inside. */
  inside(command: readonly string[]): string[];
}

/** Why a namespace can't be made here; undefined when it can. */
export function whyNoNetNamespace(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces need Linux';
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  try {
    execFileSync('ip', ['netns', 'list'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'the ip command (iproute2) is missing';
  }
}

export function makeNetNamespace(options: NetNamespaceOptions): NetNamespace {
  const name = `fairlead-test-${randomBytes(4).toString('hex')}`;
  const etc = `/etc/netns/${name}`;
  const ip = (...args: string[]): void =>
    void execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] });
  ip('netns', 'add', name);
  // `ip netns exec` binds these files over /etc: the system resolver then knows the test's names.
  mkdirSync(etc, { recursive: true });
  const hosts = Object.entries({ localhost: '127.0.0.1', ...options.hosts });
  writeFileSync(`${etc}/hosts`, hosts.map(([host, address]) => `${address} ${host}\n`).join(''));
  writeFileSync(`${etc}/resolv.conf`, 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
  ip('-n', name, 'link', 'set', 'lo', 'up');
  ip('-n', name, 'link', 'add', 'inner0', 'type', 'bridge');
  for (const address of options.addresses) ip('-n', name, 'addr', 'add', address, 'dev', 'inner0');
  ip('-n', name, 'link', 'set', 'inner0', 'up');
  if (options.isEveryAddressLocal === true) {
    ip('-n', name, 'route', 'add', 'local', '0.0.0.0/0', 'dev', 'lo');
    ip('-n', name, '-6', 'route', 'add', 'local', '::/0', 'dev', 'lo');
    // Programs there that are not root listen on ports such as 53, too.
    const free = 'net.ipv4.ip_unprivileged_port_start=0';
    ip('netns', 'exec', name, 'sysctl', '-qw', free);
  }
  return {
    name,
    inside: (command) => ['ip', 'netns', 'exec', name, ...command],
    [Symbol.dispose]() {
      execFileSync('ip', ['netns', 'del', name]);
      rmSync(etc, { recursive: true, force: true });
    },
  };
}
