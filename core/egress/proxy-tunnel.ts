// One CONNECT over a socket that is open to a proxy: asked once, answered or given up. It never asks
// twice (a proxy that drops connections would be asked thousands of times), never writes anything
// else, and keeps every byte that comes behind the head of a 200 for whoever uses the tunnel.
// Whatever happens here, nothing of a request has been sent.

import type { Socket } from 'node:net';

import type { Clock, TimerHandle } from '#core/clock.ts';
import { readConnectAnswer, renderConnect } from './connect-answer.ts';
import type { TunnelTarget } from './connect-answer.ts';
import type { FailureReason } from './egress-policy.ts';

export interface TunnelOptions {
  /** Open to the proxy; nobody else listens to it. Destroyed unless the tunnel opens. */
  readonly socket: Socket;
  readonly target: TunnelTarget;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

export type TunnelOutcome =
  | { readonly kind: 'open' }
  /** The proxy's policy. */
  | { readonly kind: 'denied'; readonly status: number }
  | {
      readonly kind: 'failed';
      readonly reason: Extract<
        FailureReason,
        'proxy-error' | 'proxy-answer' | 'proxy-gone' | 'proxy-timeout'
      >;
      readonly status?: number;
    };

/** Calls back once, never within the call; what it returns gives the tunnel up. */
export function openTunnel(
  options: TunnelOptions,
  done: (outcome: TunnelOutcome) => void,
): () => void {
  const tunnel = new Tunnel(options, done);
  return () => tunnel.cancel();
}

class Tunnel {
  readonly #options: TunnelOptions;
  readonly #done: (outcome: TunnelOutcome) => void;
  readonly #deadline: TimerHandle;
  #received = Buffer.alloc(0);
  #isAsked = false;
  #isOver = false;

  constructor(options: TunnelOptions, done: (outcome: TunnelOutcome) => void) {
    this.#options = options;
    this.#done = done;
    const { socket, clock, timeoutMs } = options;
    this.#deadline = clock.setTimer(timeoutMs, () => this.#fail('proxy-timeout'));
    // Not 'data': what is read and not used can be put back, and the next owner reads as it likes.
    socket.on('readable', this.#onReadable);
    socket.on('end', this.#onGone);
    socket.on('close', this.#onGone);
    socket.on('error', this.#onGone);
    // One turn of the event loop: an answer to a question that was not asked shows by then.
    setImmediate(() => this.#ask());
  }

  cancel(): void {
    if (this.#end()) this.#options.socket.destroy();
  }

  #ask(): void {
    const { socket, target } = this.#options;
    if (this.#isOver) return;
    if (socket.destroyed) {
      this.#fail('proxy-gone');
      return;
    }
    this.#isAsked = true;
    socket.write(renderConnect(target), 'latin1');
  }

  readonly #onReadable = (): void => {
    const { socket } = this.#options;
    for (let chunk = read(socket); chunk !== null; chunk = read(socket)) {
      this.#received = Buffer.concat([this.#received, chunk]);
      const answer = this.#isAsked
        ? readConnectAnswer(this.#received)
        : ({ kind: 'failed', reason: 'proxy-answer' } as const);
      if (answer.kind === 'incomplete') continue;
      if (answer.kind === 'open') this.#open(answer.headBytes);
      else this.#close(answer);
      return;
    }
  };

  readonly #onGone = (): void => this.#fail('proxy-gone');

  #open(headBytes: number): void {
    if (!this.#end()) return;
    const rest = this.#received.subarray(headBytes);
    if (rest.length > 0) this.#options.socket.unshift(rest);
    this.#done({ kind: 'open' });
  }

  #fail(reason: 'proxy-gone' | 'proxy-timeout'): void {
    this.#close({ kind: 'failed', reason });
  }

  #close(outcome: Exclude<TunnelOutcome, { kind: 'open' }>): void {
    if (!this.#end()) return;
    this.#options.socket.destroy();
    this.#done(outcome);
  }

  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#deadline.cancel();
    const { socket } = this.#options;
    socket.off('readable', this.#onReadable);
    socket.off('end', this.#onGone);
    socket.off('close', this.#onGone);
    socket.off('error', this.#onGone);
    // What is left of it may still fail; its next owner listens besides.
    socket.on('error', ignore);
    return true;
  }
}

function read(socket: Socket): Buffer | null {
  const chunk: unknown = socket.read();
  return Buffer.isBuffer(chunk) ? chunk : null;
}

function ignore(): void {}
