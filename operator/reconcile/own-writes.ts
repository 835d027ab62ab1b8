// What this process wrote last and may not have heard back yet: a cache that lags behind our own
// write must not make us write again. Forgets as soon as the watch has caught up. Never a source of
// anything but our own answers from the API server.

import { type KubeObject, objectKey } from '#operator/kube/kube-object.ts';

import type { CachedResource } from './cached-objects.ts';

interface OwnWrite<T> {
  readonly uid: string | undefined;
  readonly resourceVersion: string;
  readonly value: T;
}

export class OwnWrites {
  readonly #statuses = new Map<string, OwnWrite<CachedResource['status']>>();
  /** Digests of ConfigMap data. */
  readonly #configMaps = new Map<string, OwnWrite<string>>();

  noteStatus(written: KubeObject, status: CachedResource['status']): void {
    note(this.#statuses, statusKey(written), { written, value: status });
  }

  noteConfigMap(written: KubeObject, dataDigest: string): void {
    note(this.#configMaps, objectKey(written), { written, value: dataDigest });
  }

  /** The object with the status that we wrote, when the watch has not shown that one yet. */
  withLatestStatus(cached: CachedResource): CachedResource {
    const key = statusKey(cached);
    const own = this.#statuses.get(key);
    if (own === undefined) return cached;
    if (own.uid === cached.metadata.uid && isLater(own.resourceVersion, cached))
      return { ...cached, status: own.value };
    this.#statuses.delete(key);
    return cached;
  }

  /** The digest of what we wrote, when the watch has not shown that yet. */
  configMapDigest(key: string, cached: KubeObject | undefined): string | undefined {
    const own = this.#configMaps.get(key);
    if (own === undefined) return undefined;
    if (cached === undefined || isLater(own.resourceVersion, cached)) return own.value;
    return undefined;
  }

  /** True for the very version that we wrote: nobody has to be told of it. */
  isOwnConfigMap(current: KubeObject): boolean {
    const own = this.#configMaps.get(objectKey(current));
    return own !== undefined && own.resourceVersion === current.metadata.resourceVersion;
  }

  forgetConfigMap(key: string): void {
    this.#configMaps.delete(key);
  }

  forgetStatus(kind: string, key: string): void {
    this.#statuses.delete(`${kind} ${key}`);
  }
}

function statusKey(object: KubeObject): string {
  return `${object.kind} ${objectKey(object)}`;
}

function note<T>(
  map: Map<string, OwnWrite<T>>,
  key: string,
  { written, value }: { readonly written: KubeObject; readonly value: T },
): void {
  const { uid, resourceVersion } = written.metadata;
  if (resourceVersion === undefined) map.delete(key);
  else map.set(key, { uid, resourceVersion, value });
}

/** Resource versions of one kind are numbers that grow; anything else counts as not later. */
function isLater(resourceVersion: string, { metadata }: KubeObject): boolean {
  const other = metadata.resourceVersion ?? '';
  if (!/^[0-9]+$/.test(resourceVersion) || !/^[0-9]+$/.test(other)) return false;
  return BigInt(resourceVersion) > BigInt(other);
}
