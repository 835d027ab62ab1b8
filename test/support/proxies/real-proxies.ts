// Starts a real Squid and a real smokescreen on rendered allowlists, each as an unprivileged user.
// What belongs to a deployment of its own (ports, certificates, file names) is here; what Fairlead
// renders comes in.

import { once } from 'node:events';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';

import { systemClock } from '#core/clock.ts';

import { ManagedProcess } from '#test/support/control-plane/managed-process.ts';
import type { TestCertificate } from '#test/support/test-certificates.ts';
import { squidProgram } from './proxy-programs.ts';

export const PROXY_PORTS = { squid: 3129, smokescreen: 4750 } as const;
export type ProxyKind = keyof typeof PROXY_PORTS;

/** `nobody`, without any group or capability: what a container of a proxy gets. */
export function asNobody(command: readonly string[]): string[] {
  return ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--', ...command];
}

export interface ProxyStart {
  /** Of the proxy's own, and traversable for everybody. */
  readonly directory: string;
  /** For `localhost`. */
  readonly server: TestCertificate;
  /** Whose client certificates count. */
  readonly clientCaPem: string;
}

/** `files` are what is rendered for Squid: `include` names the one that squid.conf takes in. */
export async function startSquid(
  start: ProxyStart & {
    readonly root: string;
    readonly files: Readonly<Record<string, string>>;
    readonly include: string;
  },
): Promise<ManagedProcess> {
  const { directory, root, files, include } = start;
  await writeCertificates(start);
  await writeFiles(directory, files);
  await mkdir(join(directory, 'run'));
  await chmod(join(directory, 'run'), 0o777);
  await writeFile(join(directory, 'squid.conf'), renderSquidConf({ directory, root, include }));
  const at = ['x86_64', 'aarch64'].map((name) => join(root, `usr/lib/${name}-linux-gnu`));
  const libraries = `LD_LIBRARY_PATH=${at.join(':')}`;
  const program = squidProgram(root);
  const conf = join(directory, 'squid.conf');
  const squid = new ManagedProcess({
    name: 'Squid',
    // Squid resolves relative file names of ACLs against its working directory, and moves to
    // coredump_dir once it runs.
    cwd: directory,
    command: asNobody(['env', libraries, program, '-N', '-d', '1', '-f', conf]),
  });
  await untilListening(squid, PROXY_PORTS.squid);
  return squid;
}

/** Resolves when the changed files hold; connections that are open stay open. */
export async function reloadSquid(
  squid: ManagedProcess,
  {
    directory,
    files,
  }: { readonly directory: string; readonly files: Readonly<Record<string, string>> },
): Promise<void> {
  await writeFiles(directory, files);
  const before = squid.output.match(/Accepting .*connections at/g)?.length ?? 0;
  squid.signal('SIGHUP');
  await squid.waitForOutput(
    new RegExp(`(?:Accepting .*connections at[^]*){${String(before + 1)}}`),
  );
  await untilListening(squid, PROXY_PORTS.squid);
}

interface SquidPaths {
  readonly directory: string;
  readonly root: string;
  readonly include: string;
}

function renderSquidConf({ directory, root, include }: SquidPaths): string {
  const at = (name: string): string => join(directory, name);
  return `
https_port 127.0.0.1:${String(PROXY_PORTS.squid)} tls-cert=${at('server.crt')} tls-key=${at('server.key')} clientca=${at('clients.crt')}
visible_hostname squid.test
dns_nameservers 127.0.0.1
pid_filename ${at('run/squid.pid')}
cache_log ${at('run/cache.log')}
coredump_dir ${directory}
access_log stdio:${at('run/access.log')}
error_directory ${join(root, 'usr/share/squid-langpack/en')}
icon_directory ${join(root, 'usr/share/squid/icons')}
mime_table ${join(root, 'usr/share/squid/mime.conf')}
unlinkd_program ${join(root, 'usr/lib/squid/unlinkd')}
logfile_daemon ${join(root, 'usr/lib/squid/log_file_daemon')}
pinger_enable off
cache deny all
shutdown_lifetime 0 seconds
include ${at(include)}
`;
}

export async function startSmokescreen(
  start: ProxyStart & {
    readonly program: string;
    readonly acl: string;
    readonly flags: readonly string[];
  },
): Promise<ManagedProcess> {
  const { directory, program, acl, flags } = start;
  await writeCertificates(start);
  await writeFile(join(directory, 'acl.yaml'), acl);
  const command = [
    program,
    '--listen-ip=127.0.0.1',
    `--listen-port=${String(PROXY_PORTS.smokescreen)}`,
    `--tls-server-bundle-file=${join(directory, 'server.pem')}`,
    `--tls-client-ca-file=${join(directory, 'clients.crt')}`,
    `--egress-acl-file=${join(directory, 'acl.yaml')}`,
    ...flags,
  ];
  const smokescreen = new ManagedProcess({ name: 'smokescreen', command: asNobody(command) });
  await untilListening(smokescreen, PROXY_PORTS.smokescreen);
  return smokescreen;
}

/** Both say that they are ready a little before they listen. */
async function untilListening(proxy: ManagedProcess, port: number): Promise<void> {
  while (proxy.exit === undefined) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await systemClock.sleep(20);
  }
  throw new Error(`${proxy.name} ended: ${proxy.output}`);
}

async function writeFiles(
  directory: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
}

async function writeCertificates({ directory, server, clientCaPem }: ProxyStart): Promise<void> {
  // The keys are the test's own and die with it: the proxies' user must read them.
  await writeFile(join(directory, 'server.crt'), server.certPem);
  await writeFile(join(directory, 'server.key'), server.keyPem);
  await writeFile(join(directory, 'server.pem'), server.certPem + server.keyPem);
  await writeFile(join(directory, 'clients.crt'), clientCaPem);
}
