// The operator's informers and reconcilers on the fake API server, run by hand one key at a time: what
// they write, and what they leave alone, without workers, queues' timing or a lease.

import { systemClock } from '#core/clock.ts';
import { createLogger } from '#core/telemetry/log.ts';
import type { EventInput } from '#operator/kube/events.ts';
import { KubeClient } from '#operator/kube/kube-client.ts';
import {
  type ApiResource,
  CONFIG_MAPS,
  type KubeObject,
  NAMESPACES,
  objectKey,
  resourcePath,
} from '#operator/kube/kube-object.ts';
import { enqueueChanges } from '#operator/reconcile/enqueue-changes.ts';
import { createBindingReconciler } from '#operator/reconcile/mcp-binding/reconcile-binding.ts';
import { createServerReconciler } from '#operator/reconcile/mcp-server/reconcile-server.ts';
import { openInformers } from '#operator/reconcile/open-informers.ts';
import { MCP_BINDINGS, MCP_SERVERS } from '#operator/reconcile/resources.ts';
import { type Informers, World } from '#operator/reconcile/world.ts';
import type { Reconcile } from '#operator/watch/controller-loop.ts';
import { WorkQueue } from '#operator/watch/work-queue.ts';

import { FakeApiServer, type SeenRequest } from './fake-api-server.ts';

const RESOURCES: Readonly<Record<string, ApiResource>> = {
  Namespace: NAMESPACES,
  ConfigMap: CONFIG_MAPS,
  McpServer: MCP_SERVERS,
  McpBinding: MCP_BINDINGS,
};
const KINDS = ['McpServer', 'McpBinding'] as const;
type OwnKind = (typeof KINDS)[number];

const QUIET_LOG = createLogger({
  name: 'test',
  level: 'error',
  destination: { write: () => undefined },
});
const QUIET_METRICS = {
  contact: () => undefined,
  relist: () => undefined,
  watchStarted: () => undefined,
  drift: () => undefined,
  size: () => undefined,
};

interface SceneParts {
  readonly api: FakeApiServer;
  readonly client: KubeClient;
  readonly informers: Informers;
}

export class ReconcileScene implements AsyncDisposable {
  readonly api: FakeApiServer;
  readonly world: World;
  readonly queues = {
    servers: new WorkQueue({ name: 'servers', clock: systemClock }),
    bindings: new WorkQueue({ name: 'bindings', clock: systemClock }),
  };
  readonly events: EventInput[] = [];
  /** The wall time that conditions get. */
  nowMs = Date.UTC(2026, 0, 1);
  readonly #parts: SceneParts;
  readonly #reconcilers: Readonly<Record<OwnKind, Reconcile>>;
  readonly #wakers = new Set<() => void>();
  #seenRequests = 0;

  private constructor(parts: SceneParts) {
    this.#parts = parts;
    this.api = parts.api;
    this.world = new World(parts.informers, parts.client);
    enqueueChanges(parts.informers, this.world, this.queues);
    const wake = (): void => {
      for (const waker of [...this.#wakers]) waker();
    };
    for (const informer of Object.values(parts.informers)) informer.addHandler(wake);
    const clock = { ...systemClock, nowMs: () => this.nowMs };
    const events = { record: (event: EventInput) => void this.events.push(event) };
    const { ownWrites } = this.world;
    const common = { world: this.world, client: parts.client, clock, events, ownWrites };
    this.#reconcilers = {
      McpServer: createServerReconciler(common),
      McpBinding: createBindingReconciler(common),
    };
  }

  static async open(...objects: readonly KubeObject[]): Promise<ReconcileScene> {
    const api = await FakeApiServer.start();
    const client = await KubeClient.open({ loadConfig: api.configLoader(), random: () => 0 });
    const informers = openInformers({
      client,
      clock: systemClock,
      log: QUIET_LOG,
      metricsFor: () => QUIET_METRICS,
      namespaces: [],
    });
    const scene = new ReconcileScene({ api, client, informers });
    for (const object of objects) scene.put(object);
    for (const informer of Object.values(informers)) informer.start();
    await Promise.all(Object.values(informers).map(({ synced }) => synced));
    await api.until(() => api.openWatches.length === Object.keys(informers).length);
    return scene;
  }

  /** Creates or replaces an object as somebody else; its status, when it has one, too. */
  put(object: KubeObject): KubeObject {
    return this.api.put(resourceOf(object.kind), object);
  }

  remove(kind: string, namespace: string, name: string): void {
    this.api.remove(resourceOf(kind), name, namespace);
  }

  get(kind: string, namespace: string | undefined, name: string): KubeObject | undefined {
    return this.#list(kind).find(
      ({ metadata }) => metadata.name === name && metadata.namespace === namespace,
    );
  }

  /** Waits until the local copies show what the server has; a deletion has to be named. */
  caughtUp(): Promise<void> {
    return this.until(() => this.#hasCaughtUp());
  }

  /** Looked at after every change that the local copies hear of. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition())
      await new Promise<void>((resolve) => {
        const waker = (): void => {
          this.#wakers.delete(waker);
          resolve();
        };
        this.#wakers.add(waker);
      });
  }

  /** One run for one object. */
  async reconcile(kind: OwnKind, key: string): Promise<void> {
    const signal = AbortSignal.timeout(10_000);
    await this.#reconcilers[kind](key, { signal, log: QUIET_LOG, reconcileId: 'test' });
  }

  /** One run for every object of both kinds, on copies that have caught up. */
  async reconcileAll(): Promise<void> {
    await this.caughtUp();
    for (const kind of KINDS)
      for (const object of this.#list(kind)) await this.reconcile(kind, objectKey(object));
    await this.caughtUp();
  }

  /** Writes that reached the server since this was asked last. */
  takeWrites(): readonly SeenRequest[] {
    const seen = this.api.requests.slice(this.#seenRequests);
    this.#seenRequests = this.api.requests.length;
    return seen.filter(({ method }) => method !== 'GET');
  }

  /** Keys that are waiting, taken out. */
  async takeQueued(): Promise<{ readonly servers: string[]; readonly bindings: string[] }> {
    const take = async (queue: WorkQueue): Promise<string[]> => {
      const keys: string[] = [];
      while (queue.depth > 0) {
        const key = await queue.take();
        if (key === undefined) break;
        queue.done(key);
        keys.push(key);
      }
      return keys.toSorted();
    };
    return { servers: await take(this.queues.servers), bindings: await take(this.queues.bindings) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { informers, client, api } = this.#parts;
    for (const queue of Object.values(this.queues)) queue.shutDown();
    await Promise.all(Object.values(informers).map((informer) => informer.stop()));
    await client[Symbol.asyncDispose]();
    await api[Symbol.asyncDispose]();
  }

  #list(kind: string): readonly KubeObject[] {
    return this.api.store.list(resourcePath(resourceOf(kind)), undefined);
  }

  #hasCaughtUp(): boolean {
    const { servers, bindings, namespaces, configMaps, ownedConfigMaps } = this.#parts.informers;
    // The fake ignores selectors: both copies of ConfigMaps hold all of them.
    const copies = [
      ['McpServer', servers],
      ['McpBinding', bindings],
      ['Namespace', namespaces],
      ['ConfigMap', configMaps],
      ['ConfigMap', ownedConfigMaps],
    ] as const;
    return copies.every(([kind, copy]) => {
      const objects = this.#list(kind);
      return objects.every(
        (object) =>
          copy.get(objectKey(object))?.metadata.resourceVersion === object.metadata.resourceVersion,
      );
    });
  }
}

function resourceOf(kind: string): ApiResource {
  const resource = RESOURCES[kind];
  if (resource === undefined) throw new TypeError(`the scene knows no kind ${kind}`);
  return resource;
}
