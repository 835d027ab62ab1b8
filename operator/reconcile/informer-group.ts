// Several informers of one kind, one per watched namespace, read as one: an operator that may see
// only some namespaces watches each of them for itself. It stores nothing of its own.

import type { ChangeHandler, Informer, InformerMetrics } from '#operator/watch/informer.ts';
import type { KubeObject } from '#operator/kube/kube-object.ts';

/** What readers need of an informer. */
export type ObjectCache<T extends KubeObject = KubeObject> = Pick<
  Informer<T>,
  'synced' | 'get' | 'listByIndex' | 'addHandler' | 'start' | 'stop'
>;

export class InformerGroup<T extends KubeObject> implements ObjectCache<T> {
  readonly #members: readonly ObjectCache<T>[];

  constructor(members: readonly ObjectCache<T>[]) {
    this.#members = members;
  }

  get synced(): Promise<void> {
    return Promise.all(this.#members.map(({ synced }) => synced)).then(() => undefined);
  }

  /** Keys carry the namespace, so at most one member has an object. */
  get(key: string): T | undefined {
    for (const member of this.#members) {
      const found = member.get(key);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  listByIndex(name: string, value: string): readonly T[] {
    return this.#members.flatMap((member) => member.listByIndex(name, value));
  }

  addHandler(handler: ChangeHandler<T>): () => void {
    const leave = this.#members.map((member) => member.addHandler(handler));
    return () => {
      for (const one of leave) one();
    };
  }

  start(): void {
    for (const member of this.#members) member.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.stop()));
  }
}

/** One series for all members: sizes add up, everything else counts as it comes. */
export function sharedMetrics(metrics: InformerMetrics): () => InformerMetrics {
  const sizes: number[] = [];
  return () => {
    const index = sizes.push(0) - 1;
    return {
      contact: (wallMs) => metrics.contact(wallMs),
      watchStarted: () => metrics.watchStarted(),
      relist: (reason) => metrics.relist(reason),
      drift: (differences) => metrics.drift(differences),
      size: (objects) => {
        sizes[index] = objects;
        metrics.size(sizes.reduce((sum, size) => sum + size, 0));
      },
    };
  };
}
