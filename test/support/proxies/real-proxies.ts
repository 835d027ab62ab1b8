// Starts a real Squid and a real smokescreen on rendered allowlists, each as an unprivileged user.
// What belongs to a deployment of its own (ports, certificates, file names) is here; what Fairlead
// renders comes in.

import { chmod, cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

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
  /** Empty, and traversable for everybody. */
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
  // A cache below a home directory can't be read by everybody.
  await copyForAll(root, join(directory, 'root'));
  await writeCertificates(start);
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  await mkdir(join(directory, 'run'));
  await chmod(join(directory, 'run'), 0o777);
  await writeFile(join(directory, 'squid.conf'), renderSquidConf(directory, include));
  const libraries = `LD_LIBRARY_PATH=${join(directory, 'root/usr/lib/x86_64-linux-gnu')}:${join(directory, 'root/usr/lib/aarch64-linux-gnu')}`;
  const program = squidProgram(join(directory, 'root'));
  const conf = join(directory, 'squid.conf');
  const squid = new ManagedProcess({
    name: 'Squid',
    // Squid resolves relative file names of ACLs against its working directory.
    cwd: directory,
    command: asNobody(['env', libraries, program, '-N', '-d', '1', '-f', conf]),
  });
  await squid.waitForOutput(/Accepting .*connections at/);
  return squid;
}

function renderSquidConf(directory: string, include: string): string {
  const at = (name: string): string => join(directory, name);
  return `
https_port 127.0.0.1:${String(PROXY_PORTS.squid)} tls-cert=${at('server.crt')} tls-key=${at('server.key')} clientca=${at('clients.crt')}
visible_hostname squid.test
dns_nameservers 127.0.0.1
pid_filename ${at('run/squid.pid')}
cache_log ${at('run/cache.log')}
coredump_dir ${at('run')}
access_log stdio:${at('run/access.log')}
error_directory ${at('root/usr/share/squid-langpack/en')}
icon_directory ${at('root/usr/share/squid/icons')}
mime_table ${at('root/usr/share/squid/mime.conf')}
unlinkd_program ${at('root/usr/lib/squid/unlinkd')}
logfile_daemon ${at('root/usr/lib/squid/log_file_daemon')}
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
  await copyForAll(program, join(directory, 'smokescreen'));
  await writeCertificates(start);
  await writeFile(join(directory, 'acl.yaml'), acl);
  const command = [
    join(directory, 'smokescreen'),
    '--listen-ip=127.0.0.1',
    `--listen-port=${String(PROXY_PORTS.smokescreen)}`,
    `--tls-server-bundle-file=${join(directory, 'server.pem')}`,
    `--tls-client-ca-file=${join(directory, 'clients.crt')}`,
    `--egress-acl-file=${join(directory, 'acl.yaml')}`,
    ...flags,
  ];
  const smokescreen = new ManagedProcess({ name: 'smokescreen', command: asNobody(command) });
  await smokescreen.waitForOutput(/starting/i);
  return smokescreen;
}

async function copyForAll(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true, verbatimSymlinks: true });
}

async function writeCertificates({ directory, server, clientCaPem }: ProxyStart): Promise<void> {
  await mkdir(directory, { recursive: true });
  // The keys are the test's own and die with it: the proxies' user must read them.
  await writeFile(join(directory, 'server.crt'), server.certPem);
  await writeFile(join(directory, 'server.key'), server.keyPem);
  await writeFile(join(directory, 'server.pem'), server.certPem + server.keyPem);
  await writeFile(join(directory, 'clients.crt'), clientCaPem);
}
