// The local copy behind an informer: takes objects in, works out what changed, and tells the handlers.
// Handlers may only enqueue; what they throw is logged and goes no further. A new object under an old
// name is told as a delete and an add, never as an update.

import { objectKey } from '#operator/kube/kube-object.ts';
import type { ApiResource, KubeObject } from '#operator/kube/kube-object.ts';
import { ObjectStore } from './object-store.ts';
import type { Indexers } from './object-store.ts';
import type { WatchLog } from './watch-log.ts';

/** `current` is undefined for a delete, `old` for an add. */
export type ChangeHandler<T> = (
  old: T | undefined,
  current: T | undefined,
  context: ChangeContext,
) => void;

export interface ChangeContext {
  readonly key: string;
  /** From the first list, or from the store when the handler came late: nothing has happened to the object. */
  readonly isInitialList: boolean;
}

export interface LocalCopyOptions<T extends KubeObject> {
  readonly resource: ApiResource;
  readonly log: WatchLog;
  readonly transform: (object: KubeObject) => T;
  readonly indexers?: Indexers<T> | undefined;
  readonly onSize?: ((objects: number) => void) | undefined;
}

export class LocalCopy<T extends KubeObject> {
  readonly #options: LocalCopyOptions<T>;
  readonly #handlers = new Set<ChangeHandler<T>>();
  /** Versions for which the transform threw, so that a relist does not take them for changes. */
  readonly #unreadable = new Map<string, string | undefined>();
  readonly store: ObjectStore<T>;

  constructor(options: LocalCopyOptions<T>) {
    this.#options = options;
    this.store = new ObjectStore(options.indexers);
  }

  /** A handler that comes late hears of everything that is already there. Returns how to leave. */
  addHandler(handler: ChangeHandler<T>): () => void {
    this.#handlers.add(handler);
    for (const key of this.store.keys()) {
      this.#call(handler, undefined, this.store.get(key), { key, isInitialList: true });
    }
    return () => this.#handlers.delete(handler);
  }

  /** Makes the copy equal to a full list; returns how many objects differed. */
  replace(items: readonly KubeObject[], isInitialList: boolean): number {
    const present = new Set(items.map(objectKey));
    const vanished = this.store.keys().filter((key) => !present.has(key));
    for (const key of vanished) this.remove(key);
    for (const key of this.#unreadable.keys()) if (!present.has(key)) this.#unreadable.delete(key);
    const changed = items.filter((item) => this.put(item, isInitialList));
    return vanished.length + changed.length;
  }

  /** True when the object differs from what was there. */
  put(raw: KubeObject, isInitialList = false): boolean {
    const key = objectKey(raw);
    if (this.#isKnown(key, raw)) return false;
    const current = this.#transform(raw, key);
    const isReplaced = this.store.get(key)?.metadata.uid !== raw.metadata.uid;
    if (current === undefined || isReplaced) this.remove(key);
    if (current === undefined) {
      this.#unreadable.set(key, raw.metadata.resourceVersion);
      return true;
    }
    this.#unreadable.delete(key);
    const old = this.store.get(key);
    this.store.set(key, current);
    this.#options.onSize?.(this.store.size);
    this.#notify(old, current, { key, isInitialList });
    return true;
  }

  remove(key: string): void {
    this.#unreadable.delete(key);
    const old = this.store.get(key);
    if (old === undefined) return;
    this.store.delete(key);
    this.#options.onSize?.(this.store.size);
    this.#notify(old, undefined, { key, isInitialList: false });
  }

  #isKnown(key: string, raw: KubeObject): boolean {
    const { uid, resourceVersion } = raw.metadata;
    if (this.#unreadable.has(key) && this.#unreadable.get(key) === resourceVersion) return true;
    const known = this.store.get(key)?.metadata;
    return known !== undefined && known.uid === uid && known.resourceVersion === resourceVersion;
  }

  #transform(raw: KubeObject, key: string): T | undefined {
    try {
      return this.#options.transform(raw);
    } catch (error) {
      this.#options.log.error(
        { err: error, resource: this.#options.resource.plural, key },
        'an object could not be read',
      );
      return undefined;
    }
  }

  #notify(old: T | undefined, current: T | undefined, context: ChangeContext): void {
    for (const handler of this.#handlers) this.#call(handler, old, current, context);
  }

  #call(handler: ChangeHandler<T>, ...change: Parameters<ChangeHandler<T>>): void {
    try {
      handler(...change);
    } catch (error) {
      this.#options.log.error(
        { err: error, resource: this.#options.resource.plural, key: change[2].key },
        'an event handler failed',
      );
    }
  }
}

/** The usual transform: drops what no reconciler reads and what fills memory. */
export function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  return { ...object, metadata };
}
