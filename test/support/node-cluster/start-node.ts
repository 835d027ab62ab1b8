// One real Kubernetes node in a network namespace of its own: etcd, API server, controller
// manager, scheduler, containerd, kubelet, kube-proxy. About ten seconds and 700 MB. There is no
// DNS and no registry: images are imported. Everything that it made is gone after disposal.

import { systemClock } from '#core/clock.ts';
import {
  buildControlPlane,
  buildNodePrograms,
} from '#test/support/control-plane/build-control-plane.ts';
import type {
  ControlPlanePrograms,
  NodePrograms,
} from '#test/support/control-plane/build-control-plane.ts';
import { ManagedProcess } from '#test/support/control-plane/managed-process.ts';

import { makeNodeDirectory, removeNodeDirectory, removeStaleNodes } from './node-directory.ts';
import { writeNodeFiles } from './node-files.ts';
import type { NodeFiles } from './node-files.ts';
import { makeNodeNamespace } from './node-namespace.ts';
import type { NodeNamespace } from './node-namespace.ts';
import { installNodePackages } from './node-packages.ts';
import { buildPauseImage } from './pause-image.ts';
import { nodeCommands } from './node-commands.ts';
import { runCommand, tryCommand } from './run-command.ts';
import type { CommandResult } from './run-command.ts';

export interface TestNode extends AsyncDisposable {
  readonly kubeconfigPath: string;
  readonly namespace: NodeNamespace;
  /** As the administrator, in the node's namespace; never rejects. */
  kubectl(args: readonly string[], stdin?: string): Promise<CommandResult>;
  /** `kubectl apply -f -`; throws with kubectl's words when it fails. */
  apply(yaml: string): Promise<void>;
  importImage(archive: string): Promise<void>;
}

export interface StartNodeOptions {
  readonly progress?: (line: string) => void;
}

export async function startNode(options: StartNodeOptions = {}): Promise<TestNode> {
  const progress = options.progress ?? ((line: string) => process.stderr.write(`${line}\n`));
  await installNodePackages(progress);
  const programs = {
    ...(await buildControlPlane({ onProgress: progress })),
    ...(await buildNodePrograms({ onProgress: progress })),
  };
  await using undo = new AsyncDisposableStack();
  await removeStaleNodes();
  const directory = await makeNodeDirectory();
  undo.defer(() => removeNodeDirectory(directory));
  const namespace = await makeNodeNamespace(directory);
  undo.defer(() => namespace.remove());
  const files = await writeNodeFiles(directory);
  const node = new RunningNode({ files, namespace, programs });
  undo.defer(() => node.stop());
  await node.start();
  node.owned = undo.move();
  return node;
}

interface NodeParts {
  readonly files: NodeFiles;
  readonly namespace: NodeNamespace;
  readonly programs: ControlPlanePrograms & NodePrograms;
}

class RunningNode implements TestNode {
  readonly #parts: NodeParts;
  readonly #running = new Map<string, ManagedProcess>();
  owned: AsyncDisposableStack | undefined;

  constructor(parts: NodeParts) {
    this.#parts = parts;
  }

  get kubeconfigPath(): string {
    return this.#parts.files.kubeconfigs.admin;
  }

  get namespace(): NodeNamespace {
    return this.#parts.namespace;
  }

  kubectl(args: readonly string[], stdin?: string): Promise<CommandResult> {
    const { programs, files, namespace } = this.#parts;
    const own = ['--kubeconfig', this.kubeconfigPath, '--cache-dir', files.path('kubectl-cache')];
    return tryCommand(namespace.inside([programs.kubectl, ...own, ...args]), stdin);
  }

  async apply(yaml: string): Promise<void> {
    const { code, stderr } = await this.kubectl(['apply', '-f', '-'], yaml);
    if (code !== 0) throw new Error(`kubectl apply failed: ${stderr}`);
  }

  async importImage(archive: string): Promise<void> {
    await runCommand(this.#ctr('images', 'import', archive));
  }

  async start(): Promise<void> {
    const commands = nodeCommands(this.#parts.files, this.#parts.programs);
    this.#spawn('etcd', commands.etcd);
    this.#spawn('apiserver', commands.apiserver);
    // Ready means exit 0. A controller manager that starts before RBAC's own roles ends for good.
    await this.#until('the API server', () => this.kubectl(['get', '--raw', '/readyz']));
    this.#spawn('controller-manager', commands.controllerManager);
    this.#spawn('scheduler', commands.scheduler);
    this.#spawn('containerd', commands.containerd);
    const pause = await buildPauseImage(this.#parts.files.directory);
    await this.#until('containerd', () => tryCommand(this.#ctr('images', 'import', pause)));
    this.#spawn('kubelet', commands.kubelet);
    this.#spawn('proxy', commands.proxy);
    await this.#until('the node', () => this.kubectl(WAIT_FOR_NODE));
    // Pods are refused until the controller manager has made it.
    await this.#until('the service account', () =>
      this.kubectl(['get', 'serviceaccount', 'default']),
    );
  }

  async stop(): Promise<void> {
    await this.#stop('kubelet', 'proxy');
    if (this.#running.has('containerd')) await this.#removeTasks();
    await this.#stop('containerd', 'controller-manager', 'scheduler');
    await this.#stop('apiserver');
    await this.#stop('etcd');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.owned?.disposeAsync();
  }

  #spawn(name: string, command: readonly string[]): void {
    const { files, namespace } = this.#parts;
    const inside = namespace.inside(command);
    this.#running.set(name, new ManagedProcess({ name, command: inside, cwd: files.directory }));
  }

  async #stop(...names: readonly string[]): Promise<void> {
    await Promise.all(names.map(async (name) => this.#running.get(name)?.stop()));
  }

  #ctr(...args: readonly string[]): string[] {
    return ['ctr', '-a', this.#parts.files.path('containerd.sock'), '-n', 'k8s.io', ...args];
  }

  async #removeTasks(): Promise<void> {
    const { stdout } = await tryCommand(this.#ctr('tasks', 'ls', '-q'));
    const tasks = stdout.split('\n').filter((line) => line !== '');
    for (const task of tasks) await tryCommand(this.#ctr('tasks', 'kill', '-s', 'KILL', task));
    for (const task of tasks) await tryCommand(this.#ctr('tasks', 'delete', '-f', task));
  }

  async #until(what: string, attempt: () => Promise<CommandResult>): Promise<void> {
    let last = '';
    for (let tries = 0; tries < 240; tries += 1) {
      const { code, stderr } = await attempt();
      if (code === 0) return;
      last = stderr;
      const ended = [...this.#running.values()].find(({ exit }) => exit !== undefined);
      if (ended !== undefined)
        throw new Error(`${ended.name} ended:\n${ended.output.slice(-4_000)}`);
      await systemClock.sleep(250);
    }
    const outputs = [...this.#running.values()].map(
      ({ name, output }) => `${name}:\n${output.slice(-1_500)}`,
    );
    throw new Error(`${what} did not become ready: ${last}\n${outputs.join('\n')}`);
  }
}

const WAIT_FOR_NODE = ['wait', 'node/node-1', '--for=condition=Ready', '--timeout=1s'];
