// Holds at most one legacy session with a server and opens it when first needed, once for all who
// wait. A lost session is forgotten, never re-initialized under its old id; what becomes of the
// calls that were in it is not decided here.

import type { UpstreamSession } from '#sidecar/upstream/upstream-types.ts';

export class SessionSlot {
  readonly #open: () => Promise<UpstreamSession>;
  readonly #onHeld: (change: 1 | -1) => void;
  #session: UpstreamSession | undefined;
  #opening: Promise<UpstreamSession> | undefined;
  #isClosed = false;

  /** `onHeld` hears of each session that the slot takes or lets go. */
  constructor(open: () => Promise<UpstreamSession>, onHeld: (change: 1 | -1) => void = () => {}) {
    this.#open = open;
    this.#onHeld = onHeld;
  }

  /** At once when it is open; a failure to open is the next caller's to try again. */
  get(): UpstreamSession | Promise<UpstreamSession> {
    return this.#session ?? (this.#opening ??= this.#openOnce());
  }

  /** Puts an already open session in an empty slot; false when there is no use for it. */
  offer(session: UpstreamSession): boolean {
    if (this.#isClosed || this.#session !== undefined || this.#opening !== undefined) return false;
    this.#hold(session);
    return true;
  }

  /** The server no longer knows this session. A newer session is left alone. */
  forget(session: UpstreamSession): void {
    if (this.#session === session) this.#letGo();
  }

  /** Ends the session with the server, best effort; the slot opens no other. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const opening = this.#opening?.catch(() => undefined);
    const session = this.#session ?? (await opening);
    this.#letGo();
    await session?.close();
  }

  async #openOnce(): Promise<UpstreamSession> {
    try {
      const session = await this.#open();
      if (!this.#isClosed) this.#hold(session);
      return session;
    } finally {
      this.#opening = undefined;
    }
  }

  #hold(session: UpstreamSession): void {
    this.#session = session;
    this.#onHeld(1);
  }

  #letGo(): void {
    if (this.#session === undefined) return;
    this.#session = undefined;
    this.#onHeld(-1);
  }
}
