// The objects of the fake API server: versions, uids, generations and the event history that watches read.
// Semantics that clients depend on are real (optimistic locking, no-op writes keep their version, status
// as a subresource); schemas, defaults and field ownership are not: those are tested on the real server.

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

import { isRecord } from '#operator/kube/kube-error.ts';
import type { KubeObject } from '#operator/kube/kube-object.ts';

export interface StoreEvent {
  readonly collection: string;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
  readonly version: number;
}

/** An error answer of the API. */
export class StatusError extends Error {
  readonly code: number;
  readonly reason: string;

  constructor(code: number, reason: string, message = reason) {
    super(message);
    this.code = code;
    this.reason = reason;
  }
}

/** `/api/v1/configmaps` or `/apis/g/v/things`: what all namespaces of a kind have in common. */
export interface ObjectAddress {
  readonly collection: string;
  readonly namespace: string | undefined;
  readonly name: string;
}

export class FakeApiStore {
  readonly #objects = new Map<string, KubeObject>();
  readonly #events: StoreEvent[] = [];
  readonly #listeners = new Set<(event: StoreEvent) => void>();
  #version = 100;
  #oldestVersion = 0;

  get version(): number {
    return this.#version;
  }

  /** Forgets the history: watches from an older version get 410 from now on. */
  compact(): void {
    this.#version += 1;
    this.#oldestVersion = this.#version;
    this.#events.length = 0;
  }

  onEvent(listener: (event: StoreEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  eventsAfter(collection: string, version: number): readonly StoreEvent[] {
    if (version < this.#oldestVersion)
      throw new StatusError(410, 'Expired', 'too old resource version');
    return this.#events.filter(
      (event) => event.collection === collection && event.version > version,
    );
  }

  list(collection: string, namespace: string | undefined): readonly KubeObject[] {
    const prefix = namespace === undefined ? `${collection} ` : `${collection} ${namespace}/`;
    const found = [...this.#objects.entries()].filter(([key]) => key.startsWith(prefix));
    return found.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  get(address: ObjectAddress): KubeObject {
    const object = this.#objects.get(keyOf(address));
    if (object === undefined) throw new StatusError(404, 'NotFound', `${address.name} not found`);
    return object;
  }

  create(address: ObjectAddress, object: KubeObject): KubeObject {
    if (this.#objects.has(keyOf(address)))
      throw new StatusError(409, 'AlreadyExists', `${address.name} already exists`);
    const metadata = {
      ...object.metadata,
      uid: randomUUID(),
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
    };
    return this.#store(address, 'ADDED', { ...object, metadata });
  }

  /** Replaces everything but the status, or only the status. */
  update(address: ObjectAddress, object: KubeObject, subresource?: string): KubeObject {
    const before = this.get(address);
    const wanted = object.metadata.resourceVersion;
    if (wanted !== undefined && wanted !== before.metadata.resourceVersion) {
      throw new StatusError(409, 'Conflict', 'the object has been modified');
    }
    return this.#change(address, before, withSubresource(before, object, subresource));
  }

  /** Merge patch, and good enough for apply: maps merge, null removes, lists are replaced. */
  patch(address: ObjectAddress, patch: Record<string, unknown>, subresource?: string): KubeObject {
    const before = this.get(address);
    const metadata = isRecord(patch['metadata']) ? patch['metadata'] : {};
    const wanted = metadata['resourceVersion'];
    if (wanted !== undefined && wanted !== before.metadata.resourceVersion) {
      throw new StatusError(409, 'Conflict', 'the object has been modified');
    }
    const merged = mergePatch(before, patch) as KubeObject;
    return this.#change(address, before, withSubresource(before, merged, subresource));
  }

  delete(
    address: ObjectAddress,
    preconditions: { uid?: unknown; resourceVersion?: unknown } = {},
  ): void {
    const object = this.get(address);
    const { uid, resourceVersion } = object.metadata;
    const isOther =
      (preconditions.uid !== undefined && preconditions.uid !== uid) ||
      (preconditions.resourceVersion !== undefined &&
        preconditions.resourceVersion !== resourceVersion);
    if (isOther) throw new StatusError(409, 'Conflict', 'precondition failed');
    this.#objects.delete(keyOf(address));
    this.#emit(address.collection, 'DELETED', object);
  }

  #change(address: ObjectAddress, before: KubeObject, after: KubeObject): KubeObject {
    const { uid, generation = 1, resourceVersion, creationTimestamp } = before.metadata;
    const isSameSpec = isDeepStrictEqual(contentOf(before), contentOf(after));
    const kept = {
      generation,
      ...(uid === undefined ? {} : { uid }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    };
    const unversioned = { ...after, metadata: { ...after.metadata, ...kept } };
    if (isDeepStrictEqual(unversioned, before)) return before;
    const metadata = { ...unversioned.metadata, generation: generation + (isSameSpec ? 0 : 1) };
    return this.#store(address, 'MODIFIED', { ...unversioned, metadata });
  }

  #store(address: ObjectAddress, type: 'ADDED' | 'MODIFIED', object: KubeObject): KubeObject {
    const stored = this.#emit(address.collection, type, object);
    this.#objects.set(keyOf(address), stored);
    return stored;
  }

  #emit(collection: string, type: StoreEvent['type'], object: KubeObject): KubeObject {
    this.#version += 1;
    const version = this.#version;
    const stored = {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(version) },
    };
    const event = { collection, type, object: stored, version };
    this.#events.push(event);
    for (const listener of [...this.#listeners]) listener(event);
    return stored;
  }
}

function keyOf({ collection, namespace, name }: ObjectAddress): string {
  return `${collection} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}

function withSubresource(
  before: KubeObject,
  after: KubeObject,
  subresource: string | undefined,
): KubeObject {
  if (subresource === 'status') return { ...before, status: after['status'] };
  return before['status'] === undefined ? after : { ...after, status: before['status'] };
}

function contentOf(object: KubeObject): unknown {
  const { metadata: _metadata, status: _status, ...content } = object;
  return content;
}

export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const merged: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else merged[name] = mergePatch(merged[name], value);
  }
  return merged;
}
