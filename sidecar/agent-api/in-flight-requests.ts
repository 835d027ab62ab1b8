// The requests of one session that are in flight, by JSON-RPC id, with how to cancel each. A plain
// dictionary, not a Map: see live-set.ts.

import type { RequestId } from './exchange.ts';

export class InFlightRequests {
  readonly #cancels: Record<string, () => void> = Object.create(null) as Record<string, () => void>;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(id: RequestId): boolean {
    return this.#cancels[keyOf(id)] !== undefined;
  }

  set(id: RequestId, cancel: () => void): void {
    const key = keyOf(id);
    if (this.#cancels[key] === undefined) this.#size += 1;
    this.#cancels[key] = cancel;
  }

  get(id: RequestId): (() => void) | undefined {
    return this.#cancels[keyOf(id)];
  }

  delete(id: RequestId): void {
    const key = keyOf(id);
    if (this.#cancels[key] === undefined) return;
    this.#size -= 1;
    delete this.#cancels[key];
  }

  values(): (() => void)[] {
    return Object.values(this.#cancels);
  }
}

/** 1 and "1" are different ids. */
function keyOf(id: RequestId): string {
  return typeof id === 'string' ? `s${id}` : `n${String(id)}`;
}
