// Builds a real etcd, kube-apiserver and kubectl (and, when asked, the node's programs) from their Go
// modules into the user's cache, and finds them again. Versions are pinned; a finished build is reused.
// It never downloads binaries and never leaves a half-built directory behind: a build happens in a
// temporary directory beside the target and is renamed when complete.
// A directory of ready programs named by KUBEBUILDER_ASSETS wins over the cache.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

export const KUBERNETES_VERSION = '1.37.2';
export const ETCD_VERSION = '3.7.3';

const NODE_PROGRAMS = [
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
] as const;

export interface ControlPlanePrograms {
  readonly etcd: string;
  readonly kubeApiserver: string;
  readonly kubectl: string;
}

export interface NodePrograms {
  readonly kubeControllerManager: string;
  readonly kubeScheduler: string;
  readonly kubelet: string;
  readonly kubeProxy: string;
}

export interface BuildOptions {
  /** Receives one progress line at a time; default: stderr. */
  readonly onProgress?: (line: string) => void;
}

type Progress = (line: string) => void;

/** The cache directory of the small build (etcd, kube-apiserver, kubectl). */
export function controlPlaneDirectory(env: NodeJS.ProcessEnv = process.env): string {
  return join(cacheRoot(env), 'control-plane', `${KUBERNETES_VERSION}-${ETCD_VERSION}`);
}

/** The cache directory of the node's programs; apart, so that neither build invalidates the other. */
export function nodeDirectory(env: NodeJS.ProcessEnv = process.env): string {
  return join(cacheRoot(env), 'node', KUBERNETES_VERSION);
}

/** The programs when they are there, without building anything. */
export function findControlPlane(
  env: NodeJS.ProcessEnv = process.env,
): ControlPlanePrograms | undefined {
  const directories = [env.KUBEBUILDER_ASSETS, controlPlaneDirectory(env)].filter(
    (d): d is string => d !== undefined && d !== '',
  );
  const found = directories.find((d) =>
    ['etcd', 'kube-apiserver', 'kubectl'].every((name) => existsSync(join(d, name))),
  );
  if (found === undefined) return undefined;
  return {
    etcd: join(found, 'etcd'),
    kubeApiserver: join(found, 'kube-apiserver'),
    kubectl: join(found, 'kubectl'),
  };
}

/** The node's programs when they are there, without building anything. */
export function findNodePrograms(env: NodeJS.ProcessEnv = process.env): NodePrograms | undefined {
  const directories = [env.KUBEBUILDER_ASSETS, nodeDirectory(env)].filter(
    (d): d is string => d !== undefined && d !== '',
  );
  const found = directories.find((d) => NODE_PROGRAMS.every((name) => existsSync(join(d, name))));
  if (found === undefined) return undefined;
  return {
    kubeControllerManager: join(found, 'kube-controller-manager'),
    kubeScheduler: join(found, 'kube-scheduler'),
    kubelet: join(found, 'kubelet'),
    kubeProxy: join(found, 'kube-proxy'),
  };
}

/** Finds the programs, or builds them: about 6 minutes on 2 cores the first time. Needs `go` on PATH. */
export async function buildControlPlane(options: BuildOptions = {}): Promise<ControlPlanePrograms> {
  const existing = findControlPlane();
  if (existing !== undefined) return existing;
  await buildInto(controlPlaneDirectory(), options, async (out, progress) => {
    await buildEtcd(out, progress);
    await buildKubernetes(out, ['kube-apiserver', 'kubectl'], progress);
  });
  const built = findControlPlane();
  if (built === undefined)
    throw new Error('the build ended without etcd, kube-apiserver and kubectl');
  return built;
}

/** Finds or builds kube-controller-manager, kube-scheduler, kubelet and kube-proxy. */
export async function buildNodePrograms(options: BuildOptions = {}): Promise<NodePrograms> {
  const existing = findNodePrograms();
  if (existing !== undefined) return existing;
  await buildInto(nodeDirectory(), options, (out, progress) =>
    buildKubernetes(out, NODE_PROGRAMS, progress),
  );
  const built = findNodePrograms();
  if (built === undefined) throw new Error(`the build ended without ${NODE_PROGRAMS.join(', ')}`);
  return built;
}

function cacheRoot(env: NodeJS.ProcessEnv): string {
  const base =
    env.XDG_CACHE_HOME !== undefined && env.XDG_CACHE_HOME !== ''
      ? env.XDG_CACHE_HOME
      : join(homedir(), '.cache');
  return join(base, 'fairlead');
}

async function buildInto(
  target: string,
  options: BuildOptions,
  build: (out: string, progress: Progress) => Promise<void>,
): Promise<void> {
  const startedAt = process.hrtime.bigint();
  const elapsedSeconds = (): number =>
    Number((process.hrtime.bigint() - startedAt) / 1_000_000_000n);
  const write = options.onProgress ?? ((line: string) => process.stderr.write(`${line}\n`));
  const progress: Progress = (line) => write(`[${String(elapsedSeconds()).padStart(4)} s] ${line}`);
  await mkdir(dirname(target), { recursive: true });
  const out = await mkdtemp(`${target}.building-`);
  try {
    await build(out, progress);
    await rename(out, target).catch((error: NodeJS.ErrnoException) => {
      // Another process finished the same build first: its result is as good as ours.
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
    progress(`done: ${target}`);
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}

async function buildEtcd(out: string, progress: Progress): Promise<void> {
  await inModule('module fairlead.dev/test/etcd\n\ngo 1.26.0\n', async (directory) => {
    const main = 'go.etcd.io/etcd/server/v3';
    await run(['go', 'get', `${main}@v${ETCD_VERSION}`], {
      directory,
      label: `resolving etcd ${ETCD_VERSION}`,
      progress,
    });
    const build = ['go', 'build', '-trimpath', '-ldflags', '-s -w', '-o', join(out, 'etcd'), main];
    await run(build, { directory, label: `building etcd ${ETCD_VERSION}`, progress });
  });
}

async function buildKubernetes(
  out: string,
  programs: readonly string[],
  progress: Progress,
): Promise<void> {
  const packages = programs.map((name) => `k8s.io/kubernetes/cmd/${name}`);
  await inModule(await kubernetesGoMod(), async (directory) => {
    const imports = packages.map((name) => `\t_ "${name}"\n`).join('');
    await writeFile(
      join(directory, 'tools.go'),
      `//go:build tools\n\npackage tools\n\nimport (\n${imports})\n`,
    );
    const label = `Kubernetes ${KUBERNETES_VERSION} (${programs.join(', ')})`;
    await run(['go', 'mod', 'tidy'], { directory, label: `resolving ${label}`, progress });
    for (const [index, name] of packages.entries()) {
      const build = [
        'go',
        'build',
        '-trimpath',
        '-ldflags',
        kubernetesLinkFlags(),
        '-o',
        `${out}/`,
        name,
      ];
      await run(build, {
        directory,
        label: `building ${programs[index] ?? name} ${KUBERNETES_VERSION}`,
        progress,
      });
    }
  });
}

/**
 * k8s.io/kubernetes names its staging modules v0.0.0 and replaces them with folders of its own repository;
 * a dependent must replace each with the published module of the same release.
 */
async function kubernetesGoMod(): Promise<string> {
  const download = ['go', 'mod', 'download', '-json', `k8s.io/kubernetes@v${KUBERNETES_VERSION}`];
  const described: unknown = JSON.parse(await run(download, { directory: tmpdir() }));
  if (
    typeof described !== 'object' ||
    described === null ||
    !('GoMod' in described) ||
    typeof described.GoMod !== 'string'
  ) {
    throw new Error('go mod download named no go.mod file');
  }
  return renderDependentGoMod(await readFile(described.GoMod, 'utf8'));
}

/** Pure: the go.mod of a module that depends on k8s.io/kubernetes, from that module's own go.mod. */
export function renderDependentGoMod(kubernetesGoModText: string): string {
  const lines = kubernetesGoModText.split('\n');
  const header = lines.filter((line) => /^(go|godebug) /.test(line));
  const staging = new Set(
    lines.map((line) => /^\s*(k8s\.io\/[a-z-]+) v0\.0\.0( \/\/ indirect)?$/.exec(line)?.[1]),
  );
  const published = `v0.${KUBERNETES_VERSION.slice(2)}`;
  const replaces = [...staging]
    .filter((name) => name !== undefined)
    .sort()
    .map((name) => `\t${name} => ${name} ${published}\n`);
  return [
    'module fairlead.dev/test/cluster\n\n',
    `${header.join('\n')}\n\nrequire k8s.io/kubernetes v${KUBERNETES_VERSION}\n\n`,
    `replace (\n${replaces.join('')})\n`,
  ].join('');
}

/** Without these the server calls itself v0.0.0-master, and version checks of clients fail. */
function kubernetesLinkFlags(): string {
  const at = 'k8s.io/component-base/version';
  const [major = '', minor = ''] = KUBERNETES_VERSION.split('.');
  const values = {
    gitVersion: `v${KUBERNETES_VERSION}`,
    gitMajor: major,
    gitMinor: minor,
    gitTreeState: 'clean',
    buildDate: '2026-01-01T00:00:00Z',
  };
  return [
    '-s',
    '-w',
    ...Object.entries(values).map(([name, value]) => `-X ${at}.${name}=${value}`),
  ].join(' ');
}

async function inModule(goMod: string, use: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-build-'));
  try {
    await writeFile(join(directory, 'go.mod'), goMod);
    await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

interface RunOptions {
  readonly directory: string;
  readonly label?: string;
  readonly progress?: Progress;
}

/** Runs a command politely (nice), says so every 20 s while it runs, and returns its stdout. */
async function run(command: readonly string[], options: RunOptions): Promise<string> {
  const { directory, label = command.join(' '), progress = () => undefined } = options;
  progress(label);
  const heartbeat = setInterval(() => progress(`still ${label}`), 20_000);
  const child = spawn('nice', ['-n', '10', ...command], {
    cwd: directory,
    env: { ...process.env, GOFLAGS: '-buildvcs=false -mod=mod', CGO_ENABLED: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
  child.stderr
    .setEncoding('utf8')
    .on('data', (chunk: string) => (stderr = (stderr + chunk).slice(-8_000)));
  try {
    const code = await new Promise<number | null>((resolve, reject) =>
      child.once('error', reject).once('close', resolve),
    );
    if (code !== 0)
      throw new Error(`${command.slice(0, 3).join(' ')} ended with ${String(code)}:\n${stderr}`);
    return stdout;
  } finally {
    clearInterval(heartbeat);
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const wanted = process.argv.slice(2);
  const programs = wanted.includes('--node')
    ? await buildNodePrograms()
    : await buildControlPlane();
  process.stdout.write(`${JSON.stringify(programs, undefined, 2)}\n`);
}
