// The cache behind an informer: objects by `namespace/name`, with named indexes kept up to date.
// It holds references, never copies: what comes out must not be changed.

export interface Indexers<T> {
  readonly [name: string]: (object: T) => readonly string[];
}

export class ObjectStore<T> {
  readonly #indexers: Indexers<T>;
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string, Map<string, Set<string>>>();

  constructor(indexers: Indexers<T> = {}) {
    this.#indexers = indexers;
    for (const name of Object.keys(indexers)) this.#indexes.set(name, new Map());
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  keys(): readonly string[] {
    return [...this.#objects.keys()];
  }

  list(): readonly T[] {
    return [...this.#objects.values()];
  }

  set(key: string, object: T): void {
    this.delete(key);
    this.#objects.set(key, object);
    for (const [name, indexer] of Object.entries(this.#indexers)) {
      for (const value of indexer(object)) this.#bucket(name, value).add(key);
    }
  }

  delete(key: string): void {
    const object = this.#objects.get(key);
    if (object === undefined) return;
    this.#objects.delete(key);
    for (const [name, indexer] of Object.entries(this.#indexers)) {
      for (const value of indexer(object)) this.#removeFrom(name, value, key);
    }
  }

  listByIndex(name: string, value: string): readonly T[] {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new TypeError(`there is no index ${JSON.stringify(name)}`);
    const keys = [...(index.get(value) ?? [])];
    return keys.map((key) => this.#objects.get(key)).filter((object) => object !== undefined);
  }

  #bucket(name: string, value: string): Set<string> {
    const index = this.#indexes.get(name) ?? new Map<string, Set<string>>();
    const bucket = index.get(value) ?? new Set<string>();
    index.set(value, bucket);
    return bucket;
  }

  #removeFrom(name: string, value: string, key: string): void {
    const index = this.#indexes.get(name);
    const bucket = index?.get(value);
    bucket?.delete(key);
    if (bucket?.size === 0) index?.delete(value);
  }
}
