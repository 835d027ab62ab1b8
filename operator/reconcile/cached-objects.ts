// What the operator's informers keep of each kind: our own kinds parsed once per change, and of
// ConfigMaps only what is compared. Transforms are pure.

import { createHash } from 'node:crypto';

import { canonicalJson } from '#core/config/sidecar-config.ts';
import { type ObjectVerdict, validateObject } from '#crds/validate-object.ts';
import type { Condition } from '#crds/status-schema.ts';
import type { KubeObject, ObjectMeta } from '#operator/kube/kube-object.ts';

/** One of our kinds: its metadata, what its spec is worth, and the status as it stands. */
export interface CachedResource extends KubeObject {
  readonly verdict: ObjectVerdict;
  readonly status: {
    readonly observedGeneration: number;
    readonly conditions: readonly Condition[];
    readonly [field: string]: unknown;
  };
}

export function cacheResource(object: KubeObject): CachedResource {
  const { apiVersion, kind, metadata } = object;
  const verdict = validateObject(object, { development: false, unknownFields: 'ignore' });
  const status = verdict.kind === 'ok' ? verdict.object.status : readStatus(object['status']);
  return { apiVersion, kind, metadata: slimMetadata(metadata), verdict, status: { ...status } };
}

/** Of an object whose spec is not valid: what it takes not to repeat ourselves. */
function readStatus(status: unknown): CachedResource['status'] {
  const { observedGeneration, conditions, ...rest } = (status ?? {}) as Record<string, unknown>;
  return {
    ...rest,
    observedGeneration: typeof observedGeneration === 'number' ? observedGeneration : -1,
    conditions: Array.isArray(conditions) ? (conditions as Condition[]) : [],
  };
}

/** A ConfigMap of ours: everything that we set, with the data as a digest. */
export interface CachedConfigMap extends KubeObject {
  readonly dataDigest: string;
  /** Keys of `data` and `binaryData`. */
  readonly dataKeys: readonly string[];
}

export function cacheConfigMap(object: KubeObject): CachedConfigMap {
  const { apiVersion, kind, metadata } = object;
  return {
    apiVersion,
    kind,
    metadata: { ...slimMetadata(metadata), ownerReferences: metadata.ownerReferences ?? [] },
    dataDigest: digestData(object),
    dataKeys: [...keysOf(object['data']), ...keysOf(object['binaryData'])],
  };
}

function keysOf(map: unknown): string[] {
  return map !== null && typeof map === 'object' ? Object.keys(map) : [];
}

/** Equal for equal `data` and `binaryData`. */
export function digestData(object: { readonly [field: string]: unknown }): string {
  return createHash('sha256')
    .update(canonicalJson([object['data'] ?? {}, object['binaryData'] ?? {}]))
    .digest('base64');
}

/** Metadata that reconcilers look at; managed fields and annotations are most of the memory. */
export function slimMetadata(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace, uid, resourceVersion, generation, deletionTimestamp, labels } = metadata;
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(generation === undefined ? {} : { generation }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(labels === undefined ? {} : { labels }),
  };
}

/** Metadata only, with the owner: who made an object that has a name of ours. */
export function cacheMetadata(object: KubeObject): KubeObject {
  const { ownerReferences } = object.metadata;
  const metadata = {
    ...slimMetadata(object.metadata),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
  };
  return { apiVersion: object.apiVersion, kind: object.kind, metadata };
}
