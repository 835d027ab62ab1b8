// Builds a real etcd, kube-apiserver and kubectl (and, when asked, the node's programs) from their Go
// modules into the user's cache, and finds them again. Versions are pinned; a finished build is reused.
// It never downloads binaries. A directory of ready programs named by KUBEBUILDER_ASSETS wins over the cache.
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { buildGoProgram, inModule, run } from '#test/support/go-module.ts';
import { buildInto, cacheRoot } from '#test/support/program-cache.ts';
import type { BuildOptions, Progress } from '#test/support/program-cache.ts';

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

async function buildEtcd(out: string, progress: Progress): Promise<void> {
  await buildGoProgram(
    { label: 'etcd', main: 'go.etcd.io/etcd/server/v3', version: ETCD_VERSION },
    { out: join(out, 'etcd'), progress },
  );
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

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const wanted = process.argv.slice(2);
  const programs = wanted.includes('--node')
    ? await buildNodePrograms()
    : await buildControlPlane();
  process.stdout.write(`${JSON.stringify(programs, undefined, 2)}\n`);
}
