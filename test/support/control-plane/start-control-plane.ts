// A real etcd and kube-apiserver on loopback for one test file, in about five seconds, with RBAC, an audit
// log, and an API server that can be killed and started again on the same port and data.
// There is no controller manager: nothing is garbage collected and namespaces never finish deleting.
// Everything that it made is gone after disposal.

import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { systemClock } from '#core/clock.ts';
import { AuditLog } from './audit-log.ts';
import { buildControlPlane } from './build-control-plane.ts';
import type { ControlPlanePrograms } from './build-control-plane.ts';
import { writeControlPlaneFiles, writeKubeconfig } from './control-plane-files.ts';
import type { AuditLevel, ControlPlaneFiles } from './control-plane-files.ts';
import { ManagedProcess } from './managed-process.ts';

export interface ControlPlaneOptions {
  /** Default true, at Metadata level. */
  readonly auditLog?: boolean | AuditLevel;
  readonly apiServerFlags?: readonly string[];
}

export interface KubectlResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ControlPlane extends AsyncDisposable {
  readonly url: string;
  /** An administrator (group system:masters), by client certificate. */
  readonly kubeconfigPath: string;
  readonly auditLogPath: string;
  readonly audit: AuditLog;
  readonly caPem: string;
  readonly pids: { readonly etcd: number; readonly kubeApiserver: number };
  /** Runs kubectl as the administrator. */
  kubectl(args: readonly string[], stdin?: string): Promise<KubectlResult>;
  /** `kubectl apply -f -`; throws with kubectl's words when it fails. */
  apply(yaml: string): Promise<void>;
  /** A kubeconfig for somebody else, whom RBAC must allow first. Returns its path. */
  kubeconfigFor(identity: { readonly user: string; readonly group?: string }): Promise<string>;
  /** SIGKILL by default: no goodbye to watches. */
  stopApiServer(signal?: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  startApiServer(): Promise<void>;
}

export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const programs = await buildControlPlane();
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-control-plane-'));
  const removeAtExit = (): void => rmSync(directory, { recursive: true, force: true });
  process.once('exit', removeAtExit);
  await using undo = new AsyncDisposableStack();
  undo.defer(async () => {
    process.off('exit', removeAtExit);
    await rm(directory, { recursive: true, force: true });
  });
  const level =
    options.auditLog === true || options.auditLog === undefined ? 'Metadata' : options.auditLog;
  const files = await writeControlPlaneFiles(directory, level === false ? undefined : level);
  const etcd = undo.use(await startEtcd(programs, files));
  const port = await freePort();
  const url = `https://127.0.0.1:${String(port)}`;
  const kubeconfigPath = await writeKubeconfig(files, {
    user: 'admin',
    group: 'system:masters',
    serverUrl: url,
  });
  const plane = new RunningControlPlane({
    programs,
    files,
    url,
    port,
    kubeconfigPath,
    etcd,
    options,
  });
  undo.defer(() => plane.stopApiServer('SIGTERM'));
  await plane.startApiServer();
  plane.owned = undo.move();
  return plane;
}

interface EtcdProcess extends AsyncDisposable {
  readonly clientUrl: string;
  readonly pid: number;
}

interface RunningParts {
  readonly programs: ControlPlanePrograms;
  readonly files: ControlPlaneFiles;
  readonly url: string;
  readonly port: number;
  readonly kubeconfigPath: string;
  readonly etcd: EtcdProcess;
  readonly options: ControlPlaneOptions;
}

class RunningControlPlane implements ControlPlane {
  readonly #parts: RunningParts;
  readonly audit: AuditLog;
  owned: AsyncDisposableStack | undefined;
  #apiServer: ManagedProcess | undefined;

  constructor(parts: RunningParts) {
    this.#parts = parts;
    this.audit = new AuditLog({ path: this.auditLogPath, touch: (path) => this.#touch(path) });
  }

  get url(): string {
    return this.#parts.url;
  }

  get kubeconfigPath(): string {
    return this.#parts.kubeconfigPath;
  }

  get auditLogPath(): string {
    return this.#parts.files.path('audit.log');
  }

  get caPem(): string {
    return this.#parts.files.authority.certPem;
  }

  get pids(): ControlPlane['pids'] {
    return { etcd: this.#parts.etcd.pid, kubeApiserver: this.#apiServer?.pid ?? -1 };
  }

  kubeconfigFor(identity: { readonly user: string; readonly group?: string }): Promise<string> {
    return writeKubeconfig(this.#parts.files, { ...identity, serverUrl: this.#parts.url });
  }

  kubectl(args: readonly string[], stdin?: string): Promise<KubectlResult> {
    const { programs, kubeconfigPath, files } = this.#parts;
    const own = ['--kubeconfig', kubeconfigPath, '--cache-dir', files.path('kubectl-cache')];
    return runToEnd([programs.kubectl, ...own, ...args], stdin);
  }

  async apply(yaml: string): Promise<void> {
    const { code, stderr } = await this.kubectl(['apply', '-f', '-'], yaml);
    if (code !== 0) throw new Error(`kubectl apply failed: ${stderr}`);
  }

  async startApiServer(): Promise<void> {
    if (this.#apiServer !== undefined) throw new TypeError('the API server runs already');
    const { programs, files } = this.#parts;
    const command = [programs.kubeApiserver, ...apiServerFlags(this.#parts)];
    this.#apiServer = new ManagedProcess({ name: 'kube-apiserver', command, cwd: files.directory });
    await this.#untilReady(this.#apiServer);
  }

  async stopApiServer(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    const server = this.#apiServer;
    this.#apiServer = undefined;
    await (signal === 'SIGKILL' ? server?.kill() : server?.stop());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.owned?.disposeAsync();
  }

  /** Ready means HTTP 200: the body of a failing check also contains "ok". */
  async #untilReady(server: ManagedProcess): Promise<void> {
    for (let attempt = 0; attempt < 600; attempt += 1) {
      if (server.exit !== undefined) break;
      if ((await this.#status('/readyz').catch(() => 0)) === 200) return;
      await systemClock.sleep(100);
    }
    throw new Error(`kube-apiserver did not become ready:\n${server.output.slice(-4_000)}`);
  }

  async #touch(path: string): Promise<void> {
    const status = await this.#status(path);
    if (status !== 200) throw new Error(`GET ${path}: ${String(status)}`);
  }

  async #status(path: string): Promise<number> {
    const { certPem, keyPem } = (this.#client ??= this.#parts.files.authority.issue({
      names: ['probe'],
      organization: 'system:masters',
    }));
    return new Promise((resolve, reject) => {
      const options = { ca: this.caPem, cert: certPem, key: keyPem, agent: false, timeout: 5_000 };
      const call = request(`${this.url}${path}`, options, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0));
      });
      call.once('error', reject).once('timeout', () => call.destroy(new Error('no answer')));
      call.end();
    });
  }
  #client: { readonly certPem: string; readonly keyPem: string } | undefined;
}

function apiServerFlags({ files, port, etcd, options }: RunningParts): readonly string[] {
  const audit = [
    '--audit-policy-file',
    files.path('audit-policy.yaml'),
    '--audit-log-path',
    files.path('audit.log'),
  ];
  return [
    ...['--etcd-servers', etcd.clientUrl],
    ...[
      '--secure-port',
      String(port),
      '--bind-address',
      '127.0.0.1',
      '--advertise-address',
      '127.0.0.1',
    ],
    ...['--endpoint-reconciler-type', 'none', '--service-cluster-ip-range', '10.0.0.0/24'],
    ...[
      '--tls-cert-file',
      files.path('apiserver.crt'),
      '--tls-private-key-file',
      files.path('apiserver.key'),
    ],
    ...['--client-ca-file', files.path('ca.crt'), '--cert-dir', files.path('cert-dir')],
    ...['--service-account-issuer', 'https://kubernetes.default.svc'],
    ...[
      '--service-account-key-file',
      files.path('sa.key'),
      '--service-account-signing-key-file',
      files.path('sa.key'),
    ],
    ...[
      '--authorization-mode',
      'RBAC',
      '--disable-admission-plugins',
      'ServiceAccount',
      '--allow-privileged',
    ],
    ...(options.auditLog === false ? [] : audit),
    ...(options.apiServerFlags ?? []),
  ];
}

async function startEtcd(
  programs: ControlPlanePrograms,
  files: ControlPlaneFiles,
): Promise<EtcdProcess> {
  for (let attempt = 0; ; attempt += 1) {
    const clientUrl = `http://127.0.0.1:${String(await freePort())}`;
    const command = [
      ...[
        programs.etcd,
        '--data-dir',
        files.path('etcd'),
        '--unsafe-no-fsync',
        '--log-level',
        'error',
      ],
      ...['--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
      ...['--listen-peer-urls', 'http://127.0.0.1:0'],
    ];
    const process = new ManagedProcess({ name: 'etcd', command, cwd: files.directory });
    // It exits at once when another program took the port in between.
    const exit = await Promise.race([process.exited, systemClock.sleep(500)]);
    if (exit === undefined)
      return {
        clientUrl,
        pid: process.pid,
        [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
      };
    if (attempt >= 2) throw new Error(`etcd did not start:\n${process.output}`);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}

function runToEnd(command: readonly string[], stdin: string | undefined): Promise<KubectlResult> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdin.on('error', () => undefined).end(stdin ?? '');
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code: code ?? -1, stdout, stderr }));
  });
}
