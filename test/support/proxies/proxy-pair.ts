// A Squid and a smokescreen on the same allowlists, that a test can stop, start again with other
// lists, or, with Squid, make read changed lists while it runs.

import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import type { ManagedProcess } from '#test/support/control-plane/managed-process.ts';
import type { ProxyPrograms } from './proxy-programs.ts';
import { reloadSquid, startSmokescreen, startSquid } from './real-proxies.ts';
import type { ProxyKind, ProxyStart } from './real-proxies.ts';

export interface Allowlists {
  readonly squid: {
    readonly files: Readonly<Record<string, string>>;
    /** The file of them that squid.conf takes in. */
    readonly include: string;
  };
  readonly smokescreen: { readonly acl: string; readonly flags: readonly string[] };
}

export interface ProxyPair extends AsyncDisposable {
  start(kind: ProxyKind, lists: Allowlists): Promise<void>;
  stop(kind: ProxyKind): Promise<void>;
  /** Resolves when the changed lists hold. */
  reloadSquid(lists: Allowlists): Promise<void>;
}

export async function makeProxyPair(
  programs: ProxyPrograms,
  start: ProxyStart,
): Promise<ProxyPair> {
  // A cache below a home directory can't be read by everybody.
  const root = join(start.directory, 'squid-root');
  const program = join(start.directory, 'smokescreen');
  await cp(programs.squidRoot, root, { recursive: true, verbatimSymlinks: true });
  await cp(programs.smokescreen, program);
  const running = new Map<ProxyKind, ManagedProcess>();
  const directories = new Map<ProxyKind, string>();
  let generation = 0;
  const pair: ProxyPair = {
    async start(kind, lists) {
      generation += 1;
      const directory = join(start.directory, `${kind}-${String(generation)}`);
      await mkdir(directory);
      directories.set(kind, directory);
      const common = { ...start, directory };
      const proxy =
        kind === 'squid'
          ? await startSquid({ ...common, ...lists.squid, root })
          : await startSmokescreen({ ...common, ...lists.smokescreen, program });
      running.set(kind, proxy);
    },
    async stop(kind) {
      // Not with grace: tunnels that a test forgot would hold it.
      await running.get(kind)?.kill();
      running.delete(kind);
    },
    async reloadSquid({ squid }) {
      const [proxy, directory] = [running.get('squid'), directories.get('squid')];
      if (proxy === undefined || directory === undefined) throw new Error('Squid is not running');
      await reloadSquid(proxy, { directory, files: squid.files });
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...running.keys()].map((kind) => pair.stop(kind)));
    },
  };
  return pair;
}
