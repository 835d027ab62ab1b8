// One open socket that carries one request at a time, HTTP/1.1 without pipelining. A request is
// written once and in one piece; whatever is odd about the answer, about its end or about the time
// between two answers ends the socket, so that no byte of one answer can become part of the next.
// An idle socket does not keep the process alive.

import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';

import { errors } from 'undici';

import type { Clock, TimerHandle } from '#core/clock.ts';
import type { LiveItem } from '#core/live-set.ts';
import type { CallExchange, ExchangeCarrier, ExchangeContent } from './call-exchange.ts';
import { ResponseParser } from './response-parser.ts';
import type { ResponseListener } from './response-parser.ts';

/** Up to here one copy is cheaper than two buffers for the kernel. */
const MAX_JOINED_BODY_BYTES = 65_536;
/** How long before the server does, as in undici. */
const KEEP_ALIVE_MARGIN_MS = 1_000;

export interface ConnectionOwner {
  /** Its request has its answer; it can carry another one. */
  onAnswered(connection: HttpConnection): void;
  /** The request that it was to carry is none any more. */
  onFree(connection: HttpConnection): void;
  /** Nothing of it is left; `unsent` waited for it and was never started. */
  onClosed(connection: HttpConnection, unsent: CallExchange | undefined): void;
}

export interface ConnectionOptions {
  readonly owner: ConnectionOwner;
  readonly clock: Clock;
  /** How long it may be idle, unless the server says less. */
  readonly keepAliveMs: number;
}

export class HttpConnection implements ExchangeCarrier, ResponseListener, LiveItem {
  slot = -1;
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #clock: Clock;
  readonly #parser = new ResponseParser(this);
  readonly #maxIdleMs: number;
  #idleMs: number;
  #idleSinceMs = 0;
  /** On the wire. */
  #current: CallExchange | undefined;
  /** Starts in the next turn of the event loop, if the socket still stands then. */
  #next: CallExchange | undefined;
  #bodyTimeoutMs = 0;
  #isBodyWatched = false;
  #silence: TimerHandle | undefined;

  constructor(socket: Socket, { owner, clock, keepAliveMs }: ConnectionOptions) {
    this.#socket = socket;
    this.#owner = owner;
    this.#clock = clock;
    this.#maxIdleMs = keepAliveMs;
    this.#idleMs = keepAliveMs;
    // Runs from the last byte in either direction on, which is when a connection becomes idle.
    socket.setTimeout(keepAliveMs);
    socket.on('timeout', () => this.#onTimeout());
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('end', () => this.#onEnd());
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.#onClose());
  }

  get isUsable(): boolean {
    return !this.#socket.destroyed;
  }

  /** For the pool, when it puts the connection aside. */
  rest(nowMs: number): void {
    this.#idleSinceMs = nowMs;
    this.#socket.unref();
  }

  idleForMs(nowMs: number): number {
    return nowMs - this.#idleSinceMs;
  }

  /** Also when the event loop was too busy for the socket's own timer. */
  isExpired(nowMs: number): boolean {
    return this.idleForMs(nowMs) >= this.#idleMs;
  }

  /** False when nothing was written, because the handler did not want it any more. */
  start(exchange: CallExchange): boolean {
    this.#socket.ref();
    this.#current = exchange;
    const content = exchange.start(this);
    // The handler may also have ended the pool, and this connection with it.
    if (this.#current !== exchange) return true;
    if (content === undefined) {
      this.#current = undefined;
      return false;
    }
    this.#parser.begin(content.isHeadRequest);
    this.#bodyTimeoutMs = content.bodyTimeoutMs;
    this.#isBodyWatched = false;
    if (content.headersTimeoutMs > 0)
      this.#watch(content.headersTimeoutMs, errors.HeadersTimeoutError);
    this.#write(content);
    return true;
  }

  /**
   * Lets one turn of the event loop pass first: an end that the server has sent while the socket was
   * idle is seen by then, and the request goes to another one instead of into the void.
   */
  startSoon(exchange: CallExchange): void {
    this.#next = exchange;
    this.#socket.ref();
    setImmediate(startNext, this);
  }

  startNext(): void {
    const exchange = this.#next;
    if (exchange === undefined || !this.isUsable) return;
    this.#next = undefined;
    if (!this.start(exchange)) this.#owner.onFree(this);
  }

  drop(): void {
    this.#current = undefined;
    this.close();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Ends it without a word to anybody but its owner. */
  close(): void {
    this.#silence?.cancel();
    this.#parser.stop();
    this.#socket.destroy();
  }

  /** Ends it, and its request with `error`. */
  destroy(error: Error): void {
    const exchange = this.#current;
    this.#current = undefined;
    this.close();
    exchange?.fail(error);
  }

  onHead(status: number, headers: IncomingHttpHeaders): void {
    this.#silence?.cancel();
    this.#isBodyWatched = this.#bodyTimeoutMs > 0;
    this.#noteLife();
    this.#current?.begin(status, headers);
  }

  onBody(chunk: Buffer): void {
    this.#current?.data(chunk);
  }

  onEnd(hasSurplus: boolean): void {
    const exchange = this.#current;
    if (exchange === undefined) return;
    this.#current = undefined;
    this.#silence?.cancel();
    this.#silence = undefined;
    // What is still unwritten is the rest of a request that the server has answered without it.
    const isWritten = this.#socket.writableLength === 0;
    const mayStay = isWritten && !hasSurplus && this.#heedKeepAlive();
    // A socket that stays paused would hang its next request.
    if (exchange.paused) this.#socket.resume();
    if (exchange.end() && mayStay && this.isUsable) this.#owner.onAnswered(this);
    else this.close();
  }

  onFault(error: Error): void {
    this.destroy(error);
  }

  #write({ head, body, bodyBytes }: ExchangeContent): void {
    const socket = this.#socket;
    if (body === null || bodyBytes === 0) {
      socket.write(head, 'latin1');
    } else if (bodyBytes <= MAX_JOINED_BODY_BYTES) {
      const bytes = Buffer.allocUnsafe(head.length + bodyBytes);
      bytes.write(head, 0, 'latin1');
      if (typeof body === 'string') bytes.write(body, head.length, 'utf8');
      else bytes.set(body, head.length);
      socket.write(bytes);
    } else {
      socket.cork();
      socket.write(head, 'latin1');
      socket.write(body);
      socket.uncork();
    }
  }

  #onData(chunk: Buffer): void {
    if (this.#current === undefined) {
      // Nobody asked: as the answer to the next request it would be anything but that.
      this.close();
      return;
    }
    this.#noteLife();
    this.#parser.push(chunk);
  }

  #onEnd(): void {
    if (this.#current !== undefined && this.#parser.finish()) return;
    this.destroy(new errors.SocketError('other side closed'));
  }

  #onClose(): void {
    this.destroy(new errors.SocketError('closed'));
    const unsent = this.#next;
    this.#next = undefined;
    this.#owner.onClosed(this, unsent);
  }

  #onTimeout(): void {
    if (this.#current === undefined && this.#next === undefined) this.close();
  }

  /** False when the server closes, now or before it would be worth the while. */
  #heedKeepAlive(): boolean {
    const { framing } = this.#parser;
    if (framing?.isKeptAlive !== true) return false;
    const promisedMs = framing.keepAliveMs ?? Infinity;
    const idleMs = Math.min(promisedMs - KEEP_ALIVE_MARGIN_MS, this.#maxIdleMs);
    if (idleMs <= 0) return false;
    if (idleMs !== this.#idleMs) {
      this.#idleMs = idleMs;
      this.#socket.setTimeout(idleMs);
    }
    return true;
  }

  /** The body is on its way: from here on it is the time between two pieces that counts. */
  #noteLife(): void {
    if (!this.#isBodyWatched) return;
    this.#silence?.cancel();
    this.#watch(this.#bodyTimeoutMs, errors.BodyTimeoutError);
  }

  #watch(ms: number, Reason: new () => Error): void {
    const onSilence = (): void => {
      if (this.#current?.paused === true) this.#noteLife();
      else this.destroy(new Reason());
    };
    this.#silence = this.#clock.setTimer(ms, onSilence, { unref: true });
  }
}

function startNext(connection: HttpConnection): void {
  connection.startNext();
}
