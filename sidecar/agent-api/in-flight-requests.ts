// The requests of one session that are in flight, by JSON-RPC id, with how to cancel each. A list
// that is searched: an agent has a few at once, as many as the permits and queues of its servers
// at most, and neither a Map (see core/live-set.ts) nor keys made of ids come near its cost.

import type { RequestId } from './exchange.ts';

/** A request with an id that its session knows it by. */
export interface CancellableRequest {
  readonly request: { readonly id: RequestId };
  cancelByAgent(): void;
}

export class InFlightRequests {
  readonly #requests: CancellableRequest[] = [];

  get size(): number {
    return this.#requests.length;
  }

  /** 1 and "1" are different ids. */
  get(id: RequestId): CancellableRequest | undefined {
    for (const known of this.#requests) if (known.request.id === id) return known;
    return undefined;
  }

  add(request: CancellableRequest): void {
    this.#requests.push(request);
  }

  delete(request: CancellableRequest): void {
    const index = this.#requests.indexOf(request);
    if (index === -1) return;
    const last = this.#requests.pop();
    if (last !== undefined && last !== request) this.#requests[index] = last;
  }

  /** As they are now: requests may end while they are walked. */
  values(): CancellableRequest[] {
    return this.#requests.slice();
  }
}
