// The operator's local copies: our two kinds, the ConfigMaps that we own, and metadata of namespaces
// and of all ConfigMaps. For the whole cluster, or for named namespaces one by one. Starts nothing.

import type { Clock } from '#core/clock.ts';
import type { KubeReader } from '#operator/kube/kube-client-options.ts';
import { CONFIG_MAPS, type KubeObject, NAMESPACES } from '#operator/kube/kube-object.ts';
import { Informer, type InformerMetrics, type InformerOptions } from '#operator/watch/informer.ts';
import type { WatchLog } from '#operator/watch/watch-log.ts';

import { cacheConfigMap, cacheMetadata, cacheResource } from './cached-objects.ts';
import { InformerGroup, type ObjectCache, sharedMetrics } from './informer-group.ts';
import { OWNED_SELECTOR } from '#operator/reconcile/mcp-binding/apply-config-map.ts';
import { MCP_BINDINGS, MCP_SERVERS } from './resources.ts';
import {
  BY_CA_BUNDLE,
  BY_NAMESPACE,
  BY_SERVER,
  caBundleOf,
  type Informers,
  serversOf,
} from './world.ts';

export interface OpenInformersOptions {
  readonly client: KubeReader;
  readonly clock: Clock;
  readonly log: WatchLog;
  readonly metricsFor: (resource: string) => InformerMetrics;
  /** Empty: all namespaces. */
  readonly namespaces: readonly string[];
}

type KindOptions<T extends KubeObject> = Pick<
  InformerOptions<T>,
  'resource' | 'transform' | 'labelSelector' | 'isMetadataOnly' | 'indexers'
>;

export function openInformers(options: OpenInformersOptions): Informers {
  const inNamespace = (object: KubeObject): string[] => [object.metadata.namespace ?? ''];
  return {
    servers: open(options, 'mcpservers', {
      resource: MCP_SERVERS,
      transform: cacheResource,
      indexers: { [BY_CA_BUNDLE]: caBundleOf },
    }),
    bindings: open(options, 'mcpbindings', {
      resource: MCP_BINDINGS,
      transform: cacheResource,
      indexers: { [BY_SERVER]: serversOf, [BY_NAMESPACE]: inNamespace },
    }),
    namespaces: open(options, 'namespaces', {
      resource: NAMESPACES,
      transform: cacheMetadata,
      isMetadataOnly: true,
    }),
    ownedConfigMaps: open(options, 'configmaps-owned', {
      resource: CONFIG_MAPS,
      transform: cacheConfigMap,
      labelSelector: OWNED_SELECTOR,
    }),
    configMaps: open(options, 'configmaps', {
      resource: CONFIG_MAPS,
      transform: cacheMetadata,
      isMetadataOnly: true,
    }),
  };
}

function open<T extends KubeObject>(
  { client, clock, log, metricsFor, namespaces }: OpenInformersOptions,
  name: string,
  kind: KindOptions<T>,
): ObjectCache<T> {
  const common = { ...kind, client, clock, log };
  if (namespaces.length === 0) return new Informer<T>({ ...common, metrics: metricsFor(name) });
  const nextMetrics = sharedMetrics(metricsFor(name));
  return new InformerGroup(
    namespaces.map((namespace) => {
      // A namespace is itself in none: it is picked by its name.
      const scope = kind.resource.isNamespaced
        ? { namespace }
        : { fieldSelector: `metadata.name=${namespace}` };
      return new Informer<T>({ ...common, ...scope, metrics: nextMetrics() });
    }),
  );
}
