// A real CoreDNS on port 53 of the test's own network namespace, where resolv.conf points to. It
// serves fixed names from a zone, and asks a scripted name server for the names of an attacker.

import { mkdir, writeFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';

import { ManagedProcess } from '#test/support/control-plane/managed-process.ts';

/** Names below it are answered by the scripted name server. */
export const REBIND_ZONE = 'rebind.example';

export interface CoreDnsOptions {
  readonly program: string;
  readonly directory: string;
  /** Full names without the trailing dot, each with its addresses. */
  readonly names: Readonly<Record<string, readonly string[]>>;
  readonly scriptedPort: number;
  /** Runs a command as the user that the proxies run as. */
  readonly asUser: (command: readonly string[]) => string[];
}

export async function startCoreDns(options: CoreDnsOptions): Promise<ManagedProcess> {
  const { directory, names, scriptedPort } = options;
  await mkdir(directory);
  await writeFile(join(directory, 'zone'), renderZone(names));
  // No cache plugin: each answer of the scripted server arrives as it is, time to live included.
  const corefile = `
${REBIND_ZONE}:53 {
  bind 127.0.0.1
  forward . 127.0.0.1:${String(scriptedPort)} {
    max_fails 0
  }
}
.:53 {
  bind 127.0.0.1
  file ${join(directory, 'zone')} .
}
`;
  await writeFile(join(directory, 'Corefile'), corefile);
  const command = [options.program, '-conf', join(directory, 'Corefile')];
  const coreDns = new ManagedProcess({ name: 'CoreDNS', command: options.asUser(command) });
  await coreDns.waitForOutput(/CoreDNS-\d/);
  return coreDns;
}

function renderZone(names: CoreDnsOptions['names']): string {
  const records = Object.entries(names).flatMap(([name, addresses]) =>
    addresses.map((address) => `${name}. 30 IN ${isIPv6(address) ? 'AAAA' : 'A'} ${address}\n`),
  );
  return `. 30 IN SOA ns.test. root.test. 1 60 60 60 5\n. 30 IN NS ns.test.\n${records.join('')}`;
}
