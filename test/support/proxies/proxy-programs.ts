// Real Squid (Debian's squid-openssl), smokescreen and CoreDNS (Go modules, pinned) in the user's
// cache: brought once and found again. Nothing is installed on the machine.

import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { buildGoProgram } from '#test/support/go-module.ts';
import { buildInto, cacheRoot } from '#test/support/program-cache.ts';
import type { BuildOptions } from '#test/support/program-cache.ts';
import { unpackDebianPackages } from './debian-package.ts';

const SMOKESCREEN = {
  label: 'smokescreen',
  main: 'github.com/stripe/smokescreen',
  version: '0.1.0',
} as const;
const CORE_DNS = {
  label: 'CoreDNS',
  main: 'github.com/coredns/coredns',
  version: '1.15.0',
} as const;
/** Debian's security updates change the version: the cache keeps the one that it got first. */
const SQUID_PACKAGE = 'squid-openssl';

export interface ProxyPrograms {
  /** The root of an unpacked Debian package with its libraries, not only the program. */
  readonly squidRoot: string;
  readonly smokescreen: string;
  readonly coreDns: string;
}

/** The programs when they are there, without bringing anything. */
export function findProxyPrograms(env: NodeJS.ProcessEnv = process.env): ProxyPrograms | undefined {
  const directories = directoriesOf(env);
  const programs = {
    squidRoot: directories.squid,
    smokescreen: join(directories.smokescreen, 'smokescreen'),
    coreDns: join(directories.coreDns, 'coredns'),
  };
  const all = [squidProgram(programs.squidRoot), programs.smokescreen, programs.coreDns];
  return all.every((path) => existsSync(path)) ? programs : undefined;
}

/** Finds the programs, or brings them: about 3 minutes on 2 cores the first time. */
export async function bringProxyPrograms(options: BuildOptions = {}): Promise<ProxyPrograms> {
  const { squid, smokescreen, coreDns } = directoriesOf(process.env);
  if (!existsSync(squid)) {
    await buildInto(squid, options, (out, progress) =>
      unpackDebianPackages([SQUID_PACKAGE, 'squid-common'], { out, progress }),
    );
  }
  if (!existsSync(smokescreen)) {
    await buildInto(smokescreen, options, (out, progress) =>
      buildGoProgram(SMOKESCREEN, { out: join(out, 'smokescreen'), progress }),
    );
  }
  if (!existsSync(coreDns)) {
    await buildInto(coreDns, options, (out, progress) =>
      buildGoProgram(CORE_DNS, { out: join(out, 'coredns'), progress }),
    );
  }
  const brought = findProxyPrograms();
  if (brought === undefined) throw new Error('ended without Squid, smokescreen and CoreDNS');
  return brought;
}

export function squidProgram(root: string): string {
  return join(root, 'usr/sbin/squid');
}

function directoriesOf(
  env: NodeJS.ProcessEnv,
): Readonly<Record<'squid' | 'smokescreen' | 'coreDns', string>> {
  const at = (name: string): string => join(cacheRoot(env), 'proxies', name);
  return {
    squid: at(SQUID_PACKAGE),
    smokescreen: at(`smokescreen-${SMOKESCREEN.version}`),
    coreDns: at(`coredns-${CORE_DNS.version}`),
  };
}
