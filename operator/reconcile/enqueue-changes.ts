// Who is concerned by a change: wires the informers to the two queues. Handlers only add keys.
// Changes that cannot matter (our own status writes, managed fields) queue nothing.

import { namespacedKey, splitKey, type KubeObject } from '#operator/kube/kube-object.ts';
import { type ChangeHandler } from '#operator/watch/informer.ts';
import { INITIAL_LIST_PRIORITY, type WorkQueue } from '#operator/watch/work-queue.ts';

import type { CachedConfigMap, CachedResource } from './cached-objects.ts';
import {
  BINDING_LABEL,
  CONFIG_MAP_PREFIX,
} from '#operator/reconcile/mcp-binding/apply-config-map.ts';
import { type Informers, serversOf, type World } from './world.ts';

export interface Queues {
  readonly servers: WorkQueue;
  readonly bindings: WorkQueue;
}

export function enqueueChanges(informers: Informers, world: World, queues: Queues): void {
  informers.servers.addHandler(onServer(world, queues));
  informers.bindings.addHandler(onBinding(queues));
  informers.namespaces.addHandler(onNamespace(world, queues));
  informers.ownedConfigMaps.addHandler(onOwnedConfigMap(world, queues));
  informers.configMaps.addHandler(onConfigMap(world, queues));
}

function priorityOf(isInitialList: boolean): { readonly priority: number } | undefined {
  return isInitialList ? { priority: INITIAL_LIST_PRIORITY } : undefined;
}

/** The spec, the labels or the deletion changed, or somebody else wrote the status. */
function mattersTo(old: CachedResource | undefined, current: CachedResource | undefined): boolean {
  if (old === undefined || current === undefined) return true;
  const { generation, deletionTimestamp, uid } = current.metadata;
  return (
    old.metadata.uid !== uid ||
    old.metadata.generation !== generation ||
    old.metadata.deletionTimestamp !== deletionTimestamp ||
    current.status.observedGeneration !== generation
  );
}

function onServer(world: World, queues: Queues): ChangeHandler<CachedResource> {
  return (old, current, { key, isInitialList }) => {
    if (!mattersTo(old, current)) return;
    queues.servers.add(key, priorityOf(isInitialList));
    // At the first list every binding is queued for itself.
    if (isInitialList) return;
    for (const binding of world.bindingsOf(key))
      queues.bindings.add(namespacedKey(binding.metadata.name, binding.metadata.namespace));
  };
}

function onBinding(queues: Queues): ChangeHandler<CachedResource> {
  return (old, current, { key, isInitialList }) => {
    if (!mattersTo(old, current)) return;
    queues.bindings.add(key, priorityOf(isInitialList));
    if (isInitialList) return;
    // Servers count the bindings that use them, those of before and those of now.
    const servers = new Set([
      ...(old === undefined ? [] : serversOf(old)),
      ...(current === undefined ? [] : serversOf(current)),
    ]);
    for (const server of servers) queues.servers.add(server);
  };
}

function onNamespace(world: World, queues: Queues): ChangeHandler<KubeObject> {
  return (old, current, { key, isInitialList }) => {
    if (isInitialList || (old !== undefined && current !== undefined && sameLabels(old, current)))
      return;
    for (const binding of world.bindingsIn(key)) {
      queues.bindings.add(namespacedKey(binding.metadata.name, binding.metadata.namespace));
      for (const server of serversOf(binding)) queues.servers.add(server);
    }
  };
}

function sameLabels(a: KubeObject, b: KubeObject): boolean {
  const [before, after] = [a.metadata.labels ?? {}, b.metadata.labels ?? {}];
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].every((key) => before[key] === after[key]);
}

/** Put back what was changed or deleted by hand. */
function onOwnedConfigMap(world: World, queues: Queues): ChangeHandler<CachedConfigMap> {
  return (old, current, { key, isInitialList }) => {
    if (current === undefined) world.ownWrites.forgetConfigMap(key);
    else if (world.ownWrites.isOwnConfigMap(current)) return;
    const { metadata } = current ?? old ?? {};
    const binding = metadata?.labels?.[BINDING_LABEL];
    if (isInitialList || metadata === undefined || binding === undefined) return;
    queues.bindings.add(namespacedKey(binding, metadata.namespace));
  };
}

/** A CA bundle appeared, changed or vanished; or somebody else's ConfigMap took or freed a name of ours. */
function onConfigMap(world: World, queues: Queues): ChangeHandler<KubeObject> {
  return (old, current, { key, isInitialList }) => {
    if (isInitialList) return;
    const isOther = old === undefined || current === undefined;
    if (isOther) requeueNamesake(world, queues, key);
    for (const server of world.serversWithBundle(key)) {
      const serverKey = namespacedKey(server.metadata.name, server.metadata.namespace);
      queues.servers.add(serverKey);
      for (const binding of world.bindingsOf(serverKey))
        queues.bindings.add(namespacedKey(binding.metadata.name, binding.metadata.namespace));
    }
  };
}

function requeueNamesake(world: World, queues: Queues, configMapKey: string): void {
  const { name, namespace } = splitKey(configMapKey);
  if (!name.startsWith(CONFIG_MAP_PREFIX) || world.ownedConfigMap(configMapKey) !== undefined)
    return;
  const key = namespacedKey(name.slice(CONFIG_MAP_PREFIX.length), namespace);
  if (world.binding(key) !== undefined) queues.bindings.add(key);
}
