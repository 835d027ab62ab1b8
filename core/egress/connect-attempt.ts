// One attempt to open a connection: settles once, under one deadline, and leaves nothing behind
// when it fails, whichever of deadline, socket error, verdict and cancellation comes first.

import type { Socket } from 'node:net';

import type { buildConnector } from 'undici';

import type { Clock, TimerHandle } from '#core/clock.ts';

export class ConnectAttempt {
  readonly #callback: buildConnector.Callback;
  #deadline: TimerHandle | undefined;
  #release: (() => void) | undefined;
  #isSettled = false;

  constructor(callback: buildConnector.Callback) {
    this.#callback = callback;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  startDeadline(clock: Clock, ms: number, makeError: () => Error): void {
    this.#deadline = clock.setTimer(ms, () => {
      if (!this.#isSettled) this.fail(makeError());
    });
  }

  /** How to give up what is going on now, in place of what went on before. */
  onRelease(release: () => void): void {
    if (this.#isSettled) release();
    else this.#release = release;
  }

  /** The socket that the attempt has by now; errors after the attempt are its next owner's. */
  hold(socket: Socket): void {
    socket.on('error', ignore);
    this.onRelease(() => socket.destroy());
  }

  fail(error: Error): void {
    if (!this.#settle()) return;
    this.#release?.();
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

function ignore(): void {}
