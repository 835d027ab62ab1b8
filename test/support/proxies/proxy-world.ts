// Everything that the tests of one file share: CoreDNS with the names of two bindings and of an
// attacker, a server on every address there is, and real Squid and smokescreen on what is rendered
// for the two bindings. Only inside the namespace of proxy-layer.ts.

import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createTestAuthority } from '#test/support/test-certificates.ts';
import type { TestAuthority, TestCertificate } from '#test/support/test-certificates.ts';
import { REBIND_ZONE, startCoreDns } from './core-dns.ts';
import { startEverywhereServer } from './everywhere-server.ts';
import type { EverywhereServer } from './everywhere-server.ts';
import { allowlists } from './hand-written-allowlists.ts';
import { makeProxyPair } from './proxy-pair.ts';
import type { Allowlists, ProxyPair } from './proxy-pair.ts';
import { findProxyPrograms } from './proxy-programs.ts';
import { connectThrough } from './proxy-probe.ts';
import type { ConnectOutcome } from './proxy-probe.ts';
import { asNobody, PROXY_PORTS } from './real-proxies.ts';
import type { ProxyKind } from './real-proxies.ts';
import { startScriptedDns } from './scripted-dns.ts';
import type { AnswerScript, ScriptedDns } from './scripted-dns.ts';

export const PROXY_KINDS = ['squid', 'smokescreen'] as const satisfies readonly ProxyKind[];

export const BINDINGS = {
  alpha: {
    client: 'alpha.agents',
    hosts: ['mcp.example.com', '*.tenant.example.net', `*.${REBIND_ZONE}`],
    ports: [443],
  },
  beta: { client: 'beta.agents', hosts: ['other.example.org'], ports: [443] },
} as const;
export type BindingName = keyof typeof BINDINGS;

/** Where the allowed hosts live: addresses of ordinary public ranges. */
export const PUBLIC = {
  'mcp.example.com': ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'],
  'a.tenant.example.net': ['151.101.1.69'],
  'b.c.tenant.example.net': ['151.101.65.69'],
  'tenant.example.net': ['151.101.129.69'],
  'other.example.org': ['104.18.32.7'],
  'unlisted.example.com': ['93.184.216.34'],
} as const;

export interface ProxyWorld extends AsyncDisposable {
  /** Issues the certificates of upstream servers and of the proxies. */
  readonly authority: TestAuthority;
  /** Issues the certificates of the proxies' clients. */
  readonly clients: TestAuthority;
  readonly everywhere: EverywhereServer;
  readonly dns: ScriptedDns;
  readonly proxies: ProxyPair;
  connect(
    kind: ProxyKind,
    who: BindingName | TestCertificate | undefined,
    authority: string,
  ): Promise<ConnectOutcome>;
}

export interface ProxyWorldOptions {
  /** What the attacker's name server says; default: nothing. */
  readonly script?: AnswerScript;
  readonly names?: Readonly<Record<string, readonly string[]>>;
  /** Default: those of the two bindings. */
  readonly lists?: Allowlists;
}

export async function startProxyWorld(options: ProxyWorldOptions = {}): Promise<ProxyWorld> {
  const programs = findProxyPrograms();
  if (programs === undefined) throw new Error('the proxies are not in the cache');
  await using undo = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-proxies-'));
  undo.defer(() => rm(directory, { recursive: true, force: true }));
  await chmod(directory, 0o755);
  const authority = createTestAuthority('upstream and proxies');
  const clients = createTestAuthority('clients');
  const everywhere = undo.use(
    await startEverywhereServer({
      authority,
      hosts: [...Object.keys(PUBLIC), `*.${REBIND_ZONE}`],
      tlsPorts: [443, 8443],
      plainPorts: [80, 22],
    }),
  );
  const dns = undo.use(await startScriptedDns(options.script ?? (() => [])));
  const names = { ...PUBLIC, ...options.names };
  const coreDns = { directory: join(directory, 'dns'), names, scriptedPort: dns.port };
  undo.use(await startCoreDns({ program: programs.coreDns, asUser: asNobody, ...coreDns }));
  const server = authority.issue({ names: ['localhost'] });
  const common = { server, clientCaPem: clients.certPem };
  const start = { ...common, directory: join(directory, 'proxies') };
  await mkdir(start.directory);
  const proxies = undo.use(await makeProxyPair(programs, start));
  const lists = options.lists ?? allowlists(Object.values(BINDINGS));
  for (const kind of PROXY_KINDS) await proxies.start(kind, lists);
  const identities = new Map(
    Object.entries(BINDINGS).map(([name, { client }]) => [
      name,
      clients.issue({ names: [client] }),
    ]),
  );
  const owned = undo.move();
  return {
    authority,
    clients,
    everywhere,
    dns,
    proxies,
    connect: (kind, who, target) => {
      const client = typeof who === 'string' ? identities.get(who) : who;
      return connectThrough({ port: PROXY_PORTS[kind], caPem: authority.certPem, client }, target);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
