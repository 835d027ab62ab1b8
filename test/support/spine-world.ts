// The whole path on real parts, for one test file: a real API server with both kinds applied, the
// operator, two real MCP servers behind TLS on private addresses of a network namespace of its own,
// and a sidecar in that namespace, started on the ConfigMap's very bytes.

import { execFile } from 'node:child_process';
import { mkdtemp, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { systemClock } from '#core/clock.ts';

import type { ClientPlan, ClientReport } from '#test/support/clients/plan.ts';
import { ManagedProcess } from '#test/support/control-plane/managed-process.ts';
import {
  type ControlPlane,
  startControlPlane,
} from '#test/support/control-plane/start-control-plane.ts';
import { makeNetNamespace, type NetNamespace } from './net-namespace.ts';
import { makeTestCa, type TestCa } from './test-ca.ts';

const ROOT = join(import.meta.dirname, '../..');
const NODE = process.execPath;
const ADDRESS = '10.77.0.2';
export const AGENT_PORT = 7317;

export const SERVERS = {
  everything: { host: 'everything.tools.svc.cluster.local', tlsPort: 8443, plainPort: 7321 },
  desk: { host: 'desk.tools.svc.cluster.local', tlsPort: 8444, plainPort: 7322 },
} as const;
export type ServerName = keyof typeof SERVERS;

export interface SpineWorld extends AsyncDisposable {
  readonly plane: ControlPlane;
  readonly sidecar: ManagedProcess;
  readonly namespace: NetNamespace;
  /** The bytes of config.json in the API server now. */
  configMapData(): Promise<string>;
  /** Puts the ConfigMap's bytes into the sidecar's directory as the kubelet does. */
  mount(config: string): Promise<void>;
  /** Runs a program in the namespace and reads the report that it prints. */
  runClient(command: readonly string[], plan: ClientPlan): Promise<ClientReport>;
  run(command: readonly string[]): Promise<string>;
  /** Resolves when the ConfigMap's bytes satisfy the condition. */
  untilConfigMap(condition: (config: string) => boolean): Promise<string>;
  /** Resolves when the sidecar's status page satisfies the condition. */
  sidecarHas(condition: (status: SidecarFacts) => boolean): Promise<void>;
}

export interface SidecarFacts {
  readonly revision: string | undefined;
  /** Calls on the wire, of all servers. */
  readonly inFlight: number;
}

export function serverYaml(name: ServerName, allow: readonly string[]): string {
  const { host, tlsPort } = SERVERS[name];
  return `
apiVersion: fairlead.dev/v1alpha1
kind: McpServer
metadata: { name: ${name}, namespace: tools }
spec:
  endpoint: https://${host}:${String(tlsPort)}/mcp
  egress:
    allowedHosts: [${host}]
    inClusterExceptions:
      - { host: ${host}, cidrs: [10.77.0.0/24], ports: [${String(tlsPort)}] }
    caBundleRef: { name: test-ca }
  tools: { allow: ${JSON.stringify(allow)} }
  authorization: { type: None }
  allowedNamespaces: { from: All }
`;
}

const BINDING_YAML = `
apiVersion: fairlead.dev/v1alpha1
kind: McpBinding
metadata: { name: desk-agent, namespace: agents }
spec:
  workload: { matchLabels: { app: desk-agent } }
  user: { type: Static, static: { id: alice } }
  servers:
    - { name: everything, namespace: tools }
    - { name: desk, namespace: tools }
`;

const NAMESPACES_YAML = `
apiVersion: v1
kind: Namespace
metadata: { name: tools }
---
apiVersion: v1
kind: Namespace
metadata: { name: agents, labels: { fairlead.dev/tenant: acme } }
`;

export async function startSpineWorld(
  allow: Readonly<Record<ServerName, readonly string[]>>,
): Promise<SpineWorld> {
  await using undo = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-spine-'));
  undo.defer(() => rm(directory, { recursive: true, force: true }));
  const namespace = undo.use(
    makeNetNamespace({
      addresses: [`${ADDRESS}/24`],
      hosts: Object.fromEntries(Object.values(SERVERS).map(({ host }) => [host, ADDRESS])),
    }),
  );
  const ca = makeTestCa(directory);
  await startServers({ undo, namespace, ca });
  const plane = undo.use(await startControlPlane());
  await applyEverything(plane, ca.caPem, allow);
  undo.use(startOperator(plane));
  await waitReady(plane);
  const configDirectory = join(directory, 'config');
  await mkdir(configDirectory);
  const mount = makeMount(configDirectory);
  const configMapData = (): Promise<string> => readConfigMap(plane);
  await mount(await configMapData());
  const sidecar = undo.use(
    await startSidecar(namespace, configDirectory, join(directory, 'state')),
  );
  const run = (command: readonly string[]): Promise<string> => runInside(namespace, command);
  const owned = undo.move();
  const untilConfigMap = async (condition: (config: string) => boolean): Promise<string> => {
    let config = '';
    await eventually(async () => condition((config = await configMapData())));
    return config;
  };
  return {
    untilConfigMap,
    sidecarHas: (condition) => eventually(async () => condition(await readFacts(run))),
    plane,
    sidecar,
    namespace,
    configMapData,
    mount,
    run,
    runClient: async (command, plan) =>
      JSON.parse(await run([...command, JSON.stringify(plan)])) as ClientReport,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

interface ServerStart {
  readonly undo: AsyncDisposableStack;
  readonly namespace: NetNamespace;
  readonly ca: TestCa;
}

async function startServers({ undo, namespace, ca }: ServerStart): Promise<void> {
  const quickstart = join(ROOT, 'examples/quickstart/servers');
  const programs: Record<ServerName, string[]> = {
    everything: [
      NODE,
      '--import',
      join(quickstart, 'loopback-only.mjs'),
      join(quickstart, 'everything.mjs'),
    ],
    desk: [NODE, join(quickstart, 'modern.ts')],
  };
  for (const name of ['everything', 'desk'] as const) {
    const { host, tlsPort, plainPort } = SERVERS[name];
    const command = namespace.inside(programs[name]);
    const server = undo.use(
      new ManagedProcess({
        name,
        command,
        env: { ...process.env, PORT: String(plainPort), HOSTS: host },
      }),
    );
    const { cert, key } = ca.issue(name, [host]);
    const front = [
      NODE,
      join(ROOT, 'test/support/tls-front.ts'),
      ADDRESS,
      String(tlsPort),
      String(plainPort),
      cert,
      key,
    ];
    const tls = undo.use(
      new ManagedProcess({ name: `${name}-tls`, command: namespace.inside(front) }),
    );
    await tls.waitForOutput(/listening/);
    await server.waitForOutput(new RegExp(String(plainPort)));
  }
}

async function applyEverything(
  plane: ControlPlane,
  caPem: string,
  allow: Readonly<Record<ServerName, readonly string[]>>,
): Promise<void> {
  for (const file of ['mcpservers', 'mcpbindings']) {
    await plane.apply(await readFile(join(ROOT, `crds/${file}.fairlead.dev.yaml`), 'utf8'));
  }
  const established = await plane.kubectl([
    'wait',
    '--for=condition=Established',
    '--timeout=60s',
    'crd/mcpservers.fairlead.dev',
    'crd/mcpbindings.fairlead.dev',
  ]);
  if (established.code !== 0) throw new Error(established.stderr);
  await plane.apply(NAMESPACES_YAML);
  const configMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'test-ca', namespace: 'tools' },
    data: { 'ca.crt': caPem },
  };
  await plane.apply(JSON.stringify(configMap));
  await plane.apply(
    [serverYaml('everything', allow.everything), serverYaml('desk', allow.desk), BINDING_YAML].join(
      '---\n',
    ),
  );
}

function startOperator(plane: ControlPlane): ManagedProcess {
  const command = [
    NODE,
    join(ROOT, 'bin/fairlead.ts'),
    'operator',
    '--kubeconfig',
    plane.kubeconfigPath,
    '--no-leader-elect',
    '--health-port',
    '0',
    '--metrics-port',
    '0',
  ];
  return new ManagedProcess({ name: 'operator', command });
}

async function waitReady(plane: ControlPlane): Promise<void> {
  for (const object of [
    'mcpserver/everything -n tools',
    'mcpserver/desk -n tools',
    'mcpbinding/desk-agent -n agents',
  ]) {
    const result = await plane.kubectl([
      'wait',
      '--for=condition=Ready',
      '--timeout=60s',
      ...object.split(' '),
    ]);
    if (result.code !== 0) throw new Error(`${object}: ${result.stderr}`);
  }
}

async function readConfigMap(plane: ControlPlane): Promise<string> {
  const result = await plane.kubectl([
    'get',
    'configmap',
    'fairlead-desk-agent',
    '-n',
    'agents',
    '-o',
    'json',
  ]);
  if (result.code !== 0) throw new Error(result.stderr);
  const { data } = JSON.parse(result.stdout) as { data: Record<string, string> };
  return data['config.json'] ?? '';
}

/** The kubelet's way: a new timestamped directory, then one rename of the `..data` link. */
function makeMount(directory: string): (config: string) => Promise<void> {
  let generation = 0;
  return async (config) => {
    generation += 1;
    const payload = `..generation-${String(generation)}`;
    await mkdir(join(directory, payload));
    await writeFile(join(directory, payload, 'config.json'), config);
    await symlink(payload, join(directory, '..data_tmp'));
    await rename(join(directory, '..data_tmp'), join(directory, '..data'));
    if (generation === 1) await symlink('..data/config.json', join(directory, 'config.json'));
  };
}

async function startSidecar(
  namespace: NetNamespace,
  configDirectory: string,
  stateDirectory: string,
): Promise<ManagedProcess> {
  const command = [
    NODE,
    join(ROOT, 'bin/fairlead.ts'),
    'sidecar',
    '--config-dir',
    configDirectory,
    '--state-dir',
    stateDirectory,
    '--health-host',
    '127.0.0.1',
  ];
  const sidecar = new ManagedProcess({ name: 'sidecar', command: namespace.inside(command) });
  await sidecar.waitForOutput(/sidecar ready/);
  return sidecar;
}

/** Standard output; throws with both outputs when the program fails. */
async function runInside(namespace: NetNamespace, command: readonly string[]): Promise<string> {
  const [program = '', ...args] = namespace.inside(command);
  const { stdout } = await promisify(execFile)(program, args, {
    maxBuffer: 64 * 1024 * 1024,
    timeout: 120_000,
  });
  return stdout;
}

async function readFacts(run: SpineWorld['run']): Promise<SidecarFacts> {
  const script = `fetch('http://127.0.0.1:${String(AGENT_PORT)}/status').then((answer) => answer.text()).then((text) => process.stdout.write(text))`;
  const page = JSON.parse(await run([NODE, '-e', script])) as {
    config: { runningRevision?: string };
    servers: { connections: { inFlight: number } }[];
  };
  return {
    revision: page.config.runningRevision,
    inFlight: page.servers.reduce((sum, { connections }) => sum + connections.inFlight, 0),
  };
}

async function eventually(condition: () => Promise<boolean>, timeoutMs = 30_000): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + timeoutMs;
  while (!(await condition())) {
    if (systemClock.monotonicMs() > deadlineMs)
      throw new Error(`did not come true in ${String(timeoutMs)} ms`);
    await systemClock.sleep(200);
  }
}
