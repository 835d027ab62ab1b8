// Counts how often one call was answered with `input_required` (MCP 2026-07-28, MRTR). The server's
// `requestState` is opaque and passes byte for byte; its digest only finds the count again.
// Bounded: the oldest counts are forgotten first.

import { createHash } from 'node:crypto';

const MAX_COUNTS = 4_096;

export class InputRounds {
  readonly #rounds = new Map<string, number>();

  /** The round that this answer opens: 1 for the first question of a call. */
  next(partition: string, previousState: unknown, answeredState: unknown): number {
    const round =
      (typeof previousState === 'string'
        ? (this.#rounds.get(digest(partition, previousState)) ?? 0)
        : 0) + 1;
    if (typeof answeredState === 'string') this.#remember(digest(partition, answeredState), round);
    return round;
  }

  #remember(key: string, round: number): void {
    this.#rounds.delete(key);
    this.#rounds.set(key, round);
    if (this.#rounds.size <= MAX_COUNTS) return;
    const oldest = this.#rounds.keys().next();
    if (oldest.done !== true) this.#rounds.delete(oldest.value);
  }
}

function digest(partition: string, state: string): string {
  return createHash('sha256').update(partition).update('\0').update(state).digest('base64');
}
