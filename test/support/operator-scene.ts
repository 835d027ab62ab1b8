// A real API server with both kinds applied, and operators as child processes on it: what the tests of
// the running operator share. Objects are read and written raw, under a user agent of its own, so that
// the audit log tells the operator's writes from the test's.

import { systemClock } from '#core/clock.ts';
import type { Condition } from '#crds/status-schema.ts';
import { KubeClient } from '#operator/kube/kube-client.ts';
import { kubeConfigLoader } from '#operator/kube/kube-config.ts';
import {
  type ApiResource,
  CONFIG_MAPS,
  type KubeObject,
  LEASES,
  NAMESPACES,
} from '#operator/kube/kube-object.ts';
import { MCP_BINDINGS, MCP_SERVERS } from '#operator/reconcile/resources.ts';

import { applyCrds } from './apply-crds.ts';
import type { AuditEntry, AuditMark } from '#test/support/control-plane/audit-log.ts';
import { ManagedProcess } from '#test/support/control-plane/managed-process.ts';
import {
  type ControlPlane,
  startControlPlane,
} from '#test/support/control-plane/start-control-plane.ts';

export const OPERATOR_AGENT = /^fairlead-operator\//;
const PROGRAM = new URL('../../bin/fairlead.ts', import.meta.url).pathname;
const RESOURCES: Readonly<Record<string, ApiResource>> = {
  Namespace: NAMESPACES,
  ConfigMap: CONFIG_MAPS,
  McpServer: MCP_SERVERS,
  McpBinding: MCP_BINDINGS,
  Lease: LEASES,
};

export interface OperatorStart {
  readonly kubeconfigPath?: string;
  /** Default false: it acts at once. */
  readonly electsLeader?: boolean;
  readonly flags?: readonly string[];
  readonly name?: string;
}

export class RunningOperator implements AsyncDisposable {
  readonly process: ManagedProcess;

  constructor(process: ManagedProcess) {
    this.process = process;
  }

  /** Status code and body of a page on the health port. */
  async page(path: string): Promise<{ readonly status: number; readonly text: string }> {
    const [, port = ''] = await this.process.waitForOutput(/"health_port":(\d+)/);
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: answer.status, text: await answer.text() };
  }

  untilLeading(timeoutMs = 60_000): Promise<RegExpExecArray> {
    return this.process.waitForOutput(/"event":"leading"/, timeoutMs);
  }

  /** A number that /metrics prints without labels. */
  async metric(name: string): Promise<number> {
    const { text } = await this.page('/metrics');
    const [, value = 'NaN'] = new RegExp(`^${name} (\\S+)$`, 'm').exec(text) ?? [];
    return Number(value);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process[Symbol.asyncDispose]();
  }
}

export class OperatorScene implements AsyncDisposable {
  readonly plane: ControlPlane;
  readonly client: KubeClient;

  private constructor(plane: ControlPlane, client: KubeClient) {
    this.plane = plane;
    this.client = client;
  }

  static async open({ withCrds = true } = {}): Promise<OperatorScene> {
    await using undo = new AsyncDisposableStack();
    const plane = undo.use(await startControlPlane());
    if (withCrds) await applyCrds(plane);
    const client = await KubeClient.open({
      loadConfig: kubeConfigLoader({ kubeconfigPath: plane.kubeconfigPath }),
      userAgent: 'operator-scene',
      queriesPerSecond: 1_000,
      burst: 1_000,
    });
    undo.move();
    return new OperatorScene(plane, client);
  }

  startOperator(start: OperatorStart = {}): RunningOperator {
    const { kubeconfigPath = this.plane.kubeconfigPath, name = 'operator' } = start;
    const command = [
      ...[process.execPath, PROGRAM, 'operator', '--kubeconfig', kubeconfigPath],
      ...['--health-port', '0', '--metrics-port', '0'],
      ...(start.electsLeader === true ? [] : ['--no-leader-elect']),
      ...(start.flags ?? []),
    ];
    return new RunningOperator(new ManagedProcess({ name, command }));
  }

  /** Server-side apply by a person. */
  async put(...objects: readonly KubeObject[]): Promise<void> {
    for (const object of objects) {
      const resource = resourceOf(object.kind);
      await this.client.apply(resource, object, { fieldManager: 'person' });
    }
  }

  find(kind: string, namespace: string | undefined, name: string): Promise<KubeObject | undefined> {
    const ref = { resource: resourceOf(kind), name };
    return this.client.find(namespace === undefined ? ref : { ...ref, namespace });
  }

  /** JSON merge patch by a person with kubectl. */
  async patch(target: string, namespace: string, patch: unknown): Promise<void> {
    await this.run([
      ...['patch', ...target.split(' '), '-n', namespace],
      ...['--type', 'merge', '-p', JSON.stringify(patch)],
    ]);
  }

  async run(args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.plane.kubectl(args);
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    return stdout;
  }

  async configText(namespace: string, binding: string): Promise<string | undefined> {
    const found = await this.find('ConfigMap', namespace, `fairlead-${binding}`);
    return (found?.['data'] as Record<string, string> | undefined)?.['config.json'];
  }

  /** Resolves with the object once the condition of that type says `what` (status, or reason), of its current generation. */
  untilCondition(
    target: { readonly kind: string; readonly namespace: string; readonly name: string },
    type: string,
    what: string,
  ): Promise<KubeObject> {
    return eventually(`${target.kind} ${target.name} has ${type}=${what}`, async () => {
      const object = await this.find(target.kind, target.namespace, target.name);
      if (object === undefined) return undefined;
      const condition = conditionsOf(object).find((known) => known.type === type);
      const isCurrent = condition?.observedGeneration === object.metadata.generation;
      if (isCurrent && (condition?.status === what || condition?.reason === what)) return object;
      throw new Error(`last seen: ${JSON.stringify(conditionsOf(object))}`);
    });
  }

  untilConfig(
    at: { readonly namespace: string; readonly binding: string },
    isRight: (text: string) => boolean,
  ): Promise<string> {
    return eventually(`the config of ${at.namespace}/${at.binding} is right`, async () => {
      const text = await this.configText(at.namespace, at.binding);
      return text !== undefined && isRight(text) ? text : undefined;
    });
  }

  /** Writes of operators, without lease renewals and events. */
  async operatorWrites(mark: AuditMark): Promise<readonly AuditEntry[]> {
    const writes = await this.plane.audit.writesSince(mark, { userAgent: OPERATOR_AGENT });
    return writes.filter(({ resource }) => resource !== 'events');
  }

  /** Waits until the operator has written nothing for `quietMs`. */
  async untilQuiet(quietMs = 1_500): Promise<void> {
    for (let mark = await this.plane.audit.mark(); ; mark = await this.plane.audit.mark()) {
      await systemClock.sleep(quietMs);
      if ((await this.operatorWrites(mark)).length === 0) return;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]();
    await this.plane[Symbol.asyncDispose]();
  }
}

export function conditionsOf(object: KubeObject): readonly Condition[] {
  return (object['status'] as { conditions?: Condition[] } | undefined)?.conditions ?? [];
}

export function conditionOf(object: KubeObject, type: string): Condition | undefined {
  return conditionsOf(object).find((condition) => condition.type === type);
}

/** Tries until there is a value; says at the end what the last try said. */
export async function eventually<T>(
  what: string,
  attempt: () => Promise<T | undefined>,
  timeoutMs = 30_000,
): Promise<T> {
  const deadlineMs = systemClock.monotonicMs() + timeoutMs;
  let last: unknown;
  do {
    try {
      const value = await attempt();
      if (value !== undefined) return value;
    } catch (error) {
      last = error;
    }
    await systemClock.sleep(100);
  } while (systemClock.monotonicMs() < deadlineMs);
  throw new Error(`not within ${String(timeoutMs)} ms: ${what}`, { cause: last });
}

export function namespaceObject(name: string, labels: Record<string, string> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
}

export function serverObject(
  namespace: string,
  name: string,
  spec: Readonly<Record<string, unknown>> = {},
): KubeObject {
  return {
    apiVersion: 'fairlead.dev/v1alpha1',
    kind: 'McpServer',
    metadata: { namespace, name },
    spec: {
      endpoint: `https://${name}.example.com/mcp`,
      egress: { allowedHosts: [`${name}.example.com`] },
      tools: { allow: ['get_*', 'create'] },
      allowedNamespaces: { from: 'All' },
      ...spec,
    },
  };
}

export function bindingObject(
  namespace: string,
  name: string,
  servers: readonly Readonly<Record<string, unknown>>[],
): KubeObject {
  return {
    apiVersion: 'fairlead.dev/v1alpha1',
    kind: 'McpBinding',
    metadata: { namespace, name },
    spec: {
      workload: { matchLabels: { app: name } },
      user: { type: 'Static', static: { id: 'robot' } },
      servers,
    },
  };
}

function resourceOf(kind: string): ApiResource {
  const resource = RESOURCES[kind];
  if (resource === undefined) throw new TypeError(`the scene knows no kind ${kind}`);
  return resource;
}
