// One attempt to open a connection: settles once, under one deadline, and leaves no socket behind
// when it fails, whichever of deadline, socket error and verdict comes first.

import type { Socket } from 'node:net';

import type { buildConnector } from 'undici';

import type { Clock, TimerHandle } from '#core/clock.ts';

export class ConnectAttempt {
  readonly #callback: buildConnector.Callback;
  #deadline: TimerHandle | undefined;
  #socket: Socket | undefined;
  #isSettled = false;

  constructor(callback: buildConnector.Callback) {
    this.#callback = callback;
  }

  startDeadline(clock: Clock, ms: number, makeError: () => Error): void {
    this.#deadline = clock.setTimer(ms, () => {
      if (!this.#isSettled) this.fail(makeError());
    });
  }

  hold(socket: Socket): void {
    this.#socket = socket;
    if (this.#isSettled) socket.destroy();
  }

  fail(error: Error): void {
    if (!this.#settle()) return;
    this.#socket?.destroy();
    this.#callback(error, null);
  }

  /** False when the attempt had already failed; the socket is closed then. */
  succeed(socket: Socket): boolean {
    if (!this.#settle()) {
      socket.destroy();
      return false;
    }
    this.#callback(null, socket);
    return true;
  }

  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.#deadline?.cancel();
    return true;
  }
}
