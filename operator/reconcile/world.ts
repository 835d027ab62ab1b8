// The gathered world of the reconcilers: what the informers know, with the references between
// objects indexed both ways, so that a change queues exactly those whom it concerns.

import type { McpBinding, McpServer, ObjectVerdict } from '#crds/validate-object.ts';
import type { Kind } from '#crds/custom-resource.ts';
import type { KubeClient } from '#operator/kube/kube-client.ts';
import {
  CONFIG_MAPS,
  type KubeObject,
  namespacedKey,
  splitKey,
} from '#operator/kube/kube-object.ts';

import type { CachedConfigMap, CachedResource } from './cached-objects.ts';
import type { ObjectCache } from './informer-group.ts';
import { OwnWrites } from './own-writes.ts';
import {
  type ConfigMapData,
  type JudgedServer,
  judgeServer,
} from '#operator/reconcile/mcp-server/judge-server.ts';
import { type Labels, isNamespaceAllowed } from '#operator/reconcile/mcp-binding/plan-binding.ts';

export const BY_SERVER = 'server';
export const BY_NAMESPACE = 'namespace';
export const BY_CA_BUNDLE = 'ca-bundle';

export interface Informers {
  readonly servers: ObjectCache<CachedResource>;
  readonly bindings: ObjectCache<CachedResource>;
  readonly namespaces: ObjectCache;
  readonly ownedConfigMaps: ObjectCache<CachedConfigMap>;
  /** Metadata of all ConfigMaps: tells that a CA bundle changed, not what is in it. */
  readonly configMaps: ObjectCache;
}

export function asServer(object: CachedResource | undefined): McpServer | undefined {
  return object?.verdict.kind === 'ok' && object.verdict.object.kind === 'McpServer'
    ? object.verdict.object
    : undefined;
}

export function asBinding(object: CachedResource | undefined): McpBinding | undefined {
  return object?.verdict.kind === 'ok' && object.verdict.object.kind === 'McpBinding'
    ? object.verdict.object
    : undefined;
}

/** Keys of the servers that a binding names, for the index. */
export function serversOf(object: CachedResource): string[] {
  const binding = asBinding(object);
  return (binding?.spec.servers ?? []).map(({ name, namespace }) =>
    namespacedKey(name, namespace ?? object.metadata.namespace),
  );
}

/** Key of the ConfigMap that holds a server's CA bundle, for the index. */
export function caBundleOf(object: CachedResource): string[] {
  const reference = asServer(object)?.spec.egress.caBundleRef;
  return reference === undefined ? [] : [namespacedKey(reference.name, object.metadata.namespace)];
}

interface Judgement {
  readonly verdict: ObjectVerdict;
  readonly data: ConfigMapData;
  readonly judged: JudgedServer;
}

export class World {
  readonly ownWrites = new OwnWrites();
  readonly #informers: Informers;
  readonly #client: Pick<KubeClient, 'find'>;
  /** Contents of CA ConfigMaps by key, for the resource version that they were read at. */
  readonly #bundles = new Map<
    string,
    { readonly resourceVersion: string | undefined; readonly data: ConfigMapData }
  >();

  /** Certificates are costly to parse, and one server is in many bindings. */
  readonly #judged = new Map<string, Judgement>();

  constructor(informers: Informers, client: Pick<KubeClient, 'find'>) {
    this.#informers = informers;
    this.#client = client;
  }

  server(key: string): CachedResource | undefined {
    return this.#latest('McpServer', key, this.#informers.servers.get(key));
  }

  binding(key: string): CachedResource | undefined {
    return this.#latest('McpBinding', key, this.#informers.bindings.get(key));
  }

  #latest(kind: Kind, key: string, cached: CachedResource | undefined): CachedResource | undefined {
    if (cached !== undefined) return this.ownWrites.withLatestStatus(cached);
    this.ownWrites.forgetStatus(kind, key);
    if (kind === 'McpServer') this.#judged.delete(key);
    return undefined;
  }

  ownedConfigMap(key: string): CachedConfigMap | undefined {
    return this.#informers.ownedConfigMaps.get(key);
  }

  /** Metadata of any ConfigMap. */
  configMap(key: string): KubeObject | undefined {
    return this.#informers.configMaps.get(key);
  }

  /** Undefined while the namespace is unknown: not the same as a namespace without labels. */
  namespaceLabels(namespace: string): Labels | undefined {
    const known = this.#informers.namespaces.get(namespace);
    return known === undefined ? undefined : (known.metadata.labels ?? {});
  }

  /** In a namespace that is being deleted nothing can be created, and nothing needs to be. */
  isNamespaceTerminating(namespace: string): boolean {
    return this.#informers.namespaces.get(namespace)?.metadata.deletionTimestamp !== undefined;
  }

  bindingsOf(serverKey: string): readonly CachedResource[] {
    return this.#informers.bindings.listByIndex(BY_SERVER, serverKey);
  }

  bindingsIn(namespace: string): readonly CachedResource[] {
    return this.#informers.bindings.listByIndex(BY_NAMESPACE, namespace);
  }

  serversWithBundle(configMapKey: string): readonly CachedResource[] {
    return this.#informers.servers.listByIndex(BY_CA_BUNDLE, configMapKey);
  }

  /** How many bindings name this server and may use it. */
  countBindings(serverKey: string, server: McpServer): number {
    const namespace = serverKey.split('/')[0] ?? '';
    return this.bindingsOf(serverKey).filter((binding) => {
      const own = binding.metadata.namespace ?? '';
      return isNamespaceAllowed(server, namespace, {
        namespace: own,
        namespaceLabels: this.namespaceLabels(own) ?? {},
      });
    }).length;
  }

  /** Reads a CA bundle when one is named; throws when it can't be known whether it exists. */
  async judge(key: string, signal: AbortSignal): Promise<JudgedServer | undefined> {
    const object = this.server(key);
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return undefined;
    const [bundleKey] = caBundleOf(object);
    const { verdict } = object;
    const data = bundleKey === undefined ? undefined : await this.#readBundle(bundleKey, signal);
    const known = this.#judged.get(key);
    if (known !== undefined && known.verdict === verdict && known.data === data)
      return known.judged;
    const judged = judgeServer(verdict, data);
    this.#judged.set(key, { verdict, data, judged });
    return judged;
  }

  async #readBundle(key: string, signal: AbortSignal): Promise<ConfigMapData> {
    const current = this.#informers.configMaps.get(key);
    if (current === undefined) {
      this.#bundles.delete(key);
      return undefined;
    }
    const known = this.#bundles.get(key);
    if (known !== undefined && known.resourceVersion === current.metadata.resourceVersion)
      return known.data;
    const read = await this.#client.find({ resource: CONFIG_MAPS, ...splitKey(key) }, { signal });
    const data = read === undefined ? undefined : textData(read);
    this.#bundles.set(key, { resourceVersion: read?.metadata.resourceVersion, data });
    return data;
  }
}

function textData(object: KubeObject): ConfigMapData {
  const data = object['data'];
  if (data === null || typeof data !== 'object') return {};
  return Object.fromEntries(
    Object.entries(data).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
