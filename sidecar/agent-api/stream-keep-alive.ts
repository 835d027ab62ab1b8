// One slow timer for all open event streams: a stream that was silent for about 15 seconds gets an
// SSE comment, so that no middlebox and no client takes silence for death (MCP 2026-07-28,
// Streamable HTTP, "Receiving Messages"). It never writes events, only comments.

import type { Clock, TimerHandle } from '#core/clock.ts';

import { LiveSet } from '#core/live-set.ts';
import type { LiveItem } from '#core/live-set.ts';

export const KEEP_ALIVE_TICK_MS = 5_000;
/** Whole ticks of silence before a comment: between 10 and 15 seconds. */
const SILENT_TICKS = 2;

export interface KeptAliveStream extends LiveItem {
  /** Writes one comment; must be cheap and must not throw. */
  writeComment(): void;
  /** Set by the stream to 0 at each write. */
  silentTicks: number;
}

export class StreamKeepAlive {
  readonly #clock: Clock;
  readonly #streams = new LiveSet<KeptAliveStream>();
  #timer: TimerHandle | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#streams.size;
  }

  add(stream: KeptAliveStream): void {
    this.#streams.add(stream);
    this.#timer ??= this.#clock.setTimer(KEEP_ALIVE_TICK_MS, this.#tick, { unref: true });
  }

  remove(stream: KeptAliveStream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  readonly #tick = (): void => {
    this.#timer = undefined;
    for (const stream of this.#streams.values()) {
      if (stream.silentTicks >= SILENT_TICKS) stream.writeComment();
      else stream.silentTicks += 1;
    }
    if (this.#streams.size > 0)
      this.#timer = this.#clock.setTimer(KEEP_ALIVE_TICK_MS, this.#tick, { unref: true });
  };
}
