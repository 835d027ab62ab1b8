// Opens one TCP connection to one of several judged addresses, after RFC 8305 section 5: families
// alternate, a further address is tried when one fails or is slow, and the first that connects is
// the one. It dials literals only: nothing here resolves a name, so that what was judged is what is
// dialled. The others are closed, and nothing is left behind when it is cancelled.

import { connect, isIP } from 'node:net';
import type { Socket } from 'node:net';

import type { Clock, TimerHandle } from '#core/clock.ts';

/** RFC 8305 section 8, "Connection Attempt Delay". */
const ATTEMPT_DELAY_MS = 250;
/** All addresses of an answer are judged; a thousand of them are not all dialled. */
const MAX_DIALLED = 8;

/** Begins a connection to an address literal; the socket is not connected yet. */
export type OpenSocket = (target: { readonly address: string; readonly port: number }) => Socket;

export const openSystemSocket: OpenSocket = ({ address, port }) =>
  connect({ host: address, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 });

export interface DialFailure {
  readonly address: string;
  readonly error: Error;
}

export interface DialOptions {
  readonly addresses: readonly string[];
  readonly port: number;
  readonly openSocket: OpenSocket;
  readonly clock: Clock;
  readonly onOpened: (socket: Socket) => void;
  /** One address cannot be reached; others may still be. */
  readonly onFailure: (failure: DialFailure) => void;
  /** None could be reached; `first` is the failure that came first. */
  readonly onFailed: (first: DialFailure) => void;
}

/** In the order in which they are tried: no address twice, families in turn, the first one's first. */
export function dialOrder(addresses: readonly string[]): readonly string[] {
  const unique = [...new Set(addresses)];
  const first = isIP(unique[0] ?? '');
  const same = unique.filter((address) => isIP(address) === first);
  const other = unique.filter((address) => isIP(address) !== first);
  const order = same.flatMap((address, index) => [address, ...other.slice(index, index + 1)]);
  return [...order, ...other.slice(same.length)].slice(0, MAX_DIALLED);
}

export class Dial {
  readonly #options: DialOptions;
  readonly #waiting: string[];
  readonly #open = new Map<string, Socket>();
  #firstFailure: DialFailure | undefined;
  #timer: TimerHandle | undefined;
  #isOver = false;

  constructor(options: DialOptions) {
    this.#options = options;
    this.#waiting = [...dialOrder(options.addresses)];
  }

  start(): void {
    this.#tryNext();
  }

  /** Addresses that have neither connected nor failed. */
  get pending(): readonly string[] {
    return this.#isOver ? [] : [...this.#open.keys()];
  }

  cancel(): void {
    this.#end(undefined);
  }

  #tryNext(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const address = this.#waiting.shift();
    if (address === undefined || this.#isOver) return;
    const { openSocket, port, clock } = this.#options;
    const socket = openSocket({ address, port });
    this.#open.set(address, socket);
    socket.once('connect', () => this.#onConnect(socket));
    socket.once('error', (error) => this.#onFailure({ address, error }));
    // A socket that was given up may still fail.
    socket.on('error', ignore);
    if (this.#waiting.length > 0)
      this.#timer = clock.setTimer(ATTEMPT_DELAY_MS, () => this.#tryNext());
  }

  #onConnect(socket: Socket): void {
    if (this.#isOver) return;
    this.#end(socket);
    this.#options.onOpened(socket);
  }

  #onFailure(failure: DialFailure): void {
    if (this.#isOver) return;
    this.#firstFailure ??= failure;
    this.#open.delete(failure.address);
    this.#options.onFailure(failure);
    if (this.#waiting.length > 0) {
      this.#tryNext();
    } else if (this.#open.size === 0) {
      this.#end(undefined);
      this.#options.onFailed(this.#firstFailure);
    }
  }

  #end(winner: Socket | undefined): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#waiting.length = 0;
    for (const socket of this.#open.values()) {
      if (socket !== winner) socket.destroy();
    }
  }
}

function ignore(): void {}
