// The ConfigMap of one binding: rendered purely, compared with what the cache shows, applied only
// when it differs. A ConfigMap that is somebody else's is never taken over.

import { CONFIG_FILE } from '#core/config/sidecar-config.ts';
import { GROUP_VERSION } from '#crds/custom-resource.ts';
import type { KubeClient } from '#operator/kube/kube-client.ts';
import {
  CONFIG_MAPS,
  type KubeObject,
  type ObjectRef,
  namespacedKey,
} from '#operator/kube/kube-object.ts';
import {
  type CachedConfigMap,
  type CachedResource,
  digestData,
} from '#operator/reconcile/cached-objects.ts';
import { no, type Verdict, yes } from '#operator/reconcile/conditions.ts';
import type { World } from '#operator/reconcile/world.ts';

import { type BindingPlan, judgeSize } from './plan-binding.ts';

export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
export const BINDING_LABEL = 'fairlead.dev/binding';
export const MANAGED_BY = 'fairlead';
export const CONFIG_MAP_PREFIX = 'fairlead-';
/** Selects the ConfigMaps that are ours. */
export const OWNED_SELECTOR = `${MANAGED_BY_LABEL}=${MANAGED_BY},${BINDING_LABEL}`;

export interface ConfigMapWriter {
  readonly world: World;
  readonly client: Pick<KubeClient, 'apply' | 'mergePatch'>;
}

export interface ConfigMapRun {
  readonly object: CachedResource;
  readonly plan: BindingPlan;
  readonly signal: AbortSignal;
}

/** What Programmed says afterwards. Throws when the API server does not take it. */
export async function applyConfigMap(
  writer: ConfigMapWriter,
  { object, plan, signal }: ConfigMapRun,
): Promise<Verdict> {
  const { world } = writer;
  if (plan.config.kind === 'too-large') return judgeSize(plan.config);
  const desired = renderConfigMap(object, plan.config.text);
  const { name, namespace = '' } = desired.metadata;
  const key = namespacedKey(name, namespace);
  const live = world.ownedConfigMap(key);
  if (live === undefined && isForeign(world.configMap(key), object))
    return no(
      'ApplyConflict',
      `A ConfigMap ${name} exists already and belongs to somebody else. Delete or rename it.`,
    );
  const ownDigest = world.ownWrites.configMapDigest(key, live);
  const isDone =
    ownDigest === undefined ? isAsDesired(live, desired) : ownDigest === digestData(desired);
  if (!isDone) await write(writer, { desired, live, signal });
  return yes('Programmed', `ConfigMap ${name} has revision ${plan.config.revision.slice(0, 12)}.`);
}

interface Write {
  readonly desired: KubeObject;
  readonly live: CachedConfigMap | undefined;
  readonly signal: AbortSignal;
}

async function write(
  { client, world }: ConfigMapWriter,
  { desired, live, signal }: Write,
): Promise<void> {
  const { name, namespace = '' } = desired.metadata;
  const applied = await client.apply(CONFIG_MAPS, desired, { signal });
  const ref: ObjectRef = { resource: CONFIG_MAPS, name, namespace };
  const cleaned = await removeForeignData(client, { live, ref, signal });
  world.ownWrites.noteConfigMap(cleaned ?? applied, digestData(desired));
}

/** Server-side apply removes only what we once set; a key that somebody added has to be named to go. */
async function removeForeignData(
  client: ConfigMapWriter['client'],
  {
    live,
    ref,
    signal,
  }: {
    readonly live: CachedConfigMap | undefined;
    readonly ref: ObjectRef;
    readonly signal: AbortSignal;
  },
): Promise<KubeObject | undefined> {
  const foreign = (live?.dataKeys ?? []).filter((key) => key !== CONFIG_FILE);
  if (foreign.length === 0) return undefined;
  const data = Object.fromEntries(foreign.map((key) => [key, null]));
  return client.mergePatch(ref, { data, binaryData: null }, { signal });
}

/** The ConfigMap as it must be. Pure. */
export function renderConfigMap(object: CachedResource, text: string): KubeObject {
  const { name, namespace = '', uid = '' } = object.metadata;
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: `${CONFIG_MAP_PREFIX}${name}`,
      namespace,
      labels: { [MANAGED_BY_LABEL]: MANAGED_BY, [BINDING_LABEL]: name },
      ownerReferences: [
        {
          apiVersion: GROUP_VERSION,
          kind: 'McpBinding',
          name,
          uid,
          controller: true,
          blockOwnerDeletion: false,
        },
      ],
    },
    data: { [CONFIG_FILE]: text },
  };
}

/** True when the live object has everything that we set, and no data of anybody else. Pure. */
export function isAsDesired(live: CachedConfigMap | undefined, desired: KubeObject): boolean {
  if (live === undefined || live.dataDigest !== digestData(desired)) return false;
  const labels = Object.entries(desired.metadata.labels ?? {});
  if (!labels.every(([key, value]) => live.metadata.labels?.[key] === value)) return false;
  const [owner] = desired.metadata.ownerReferences ?? [];
  return (live.metadata.ownerReferences ?? []).some(
    ({ uid, controller }) => uid === owner?.uid && controller === true,
  );
}

/** Without our labels, and not owned by this binding. */
function isForeign(existing: KubeObject | undefined, binding: CachedResource): boolean {
  if (existing === undefined) return false;
  return !(existing.metadata.ownerReferences ?? []).some(({ uid }) => uid === binding.metadata.uid);
}
