// The sockets of the call path: a bounded number of keep-alive connections to one origin, opened by
// a guarded connector only, and a queue in order of arrival. The socket that was used last is used
// first, so that those beyond the need grow old. It never retries a request that was started, never
// follows a redirect, never pipelines, and tells no handler of an error within its dispatch.

import type { Socket } from 'node:net';

import type { Dispatcher } from 'undici';
import { errors } from 'undici';

import type { Clock } from '#core/clock.ts';
import { LiveSet } from '#core/live-set.ts';
import type { LiveItem } from '#core/live-set.ts';
import { CallExchange } from './call-exchange.ts';
import type { CallHandler, ExchangeContent } from './call-exchange.ts';
import type { ConnectAttempt } from './connect-attempt.ts';
import type { GuardedConnect } from './guarded-connector.ts';
import { HttpConnection } from './http-connection.ts';
import type { ConnectionOwner } from './http-connection.ts';
import { renderRequestHead } from './request-head.ts';

/** After more idle time than this the server may well have closed, and the news be on its way. */
const TRUSTED_IDLE_MS = 50;
/** So many may wait before it is looked whether all of them still do. */
const SWEEP_AT = 128;

export interface CallPoolOptions {
  readonly url: URL;
  readonly connect: GuardedConnect;
  readonly connections: number;
  readonly keepAliveMs: number;
  /** 0: none, for requests that do not say. */
  readonly headersTimeoutMs: number;
  readonly bodyTimeoutMs: number;
  readonly clock: Clock;
}

export interface CallPoolStats {
  readonly connected: number;
  readonly free: number;
  readonly pending: number;
  readonly running: number;
}

/** A socket on the way. */
class Attempt implements LiveItem {
  slot = -1;
  connecting: ConnectAttempt | undefined;
}

export class CallPool implements ConnectionOwner {
  readonly #options: CallPoolOptions;
  /** What all heads have in common. */
  readonly #hostLine: string;
  readonly #attempts = new LiveSet<Attempt>();
  /** Until the last of a socket is gone: so many are open at most. */
  readonly #open = new LiveSet<HttpConnection>();
  readonly #idle: HttpConnection[] = [];
  /** Answered in this turn of the event loop. */
  #answered: HttpConnection[] = [];
  /** Answered in the turn before: nothing has been read from them since. */
  #settling: HttpConnection[] = [];
  #isTurnWatched = false;
  #queue: CallExchange[] = [];
  #sweepAt = SWEEP_AT;
  /** Why there are no new requests. */
  #refusal: 'closed' | 'destroyed' | undefined;
  readonly #emptied = Promise.withResolvers<void>();

  constructor(options: CallPoolOptions) {
    this.#options = options;
    this.#hostLine = `host: ${options.url.host}\r\nconnection: keep-alive\r\n`;
  }

  /** False when requests wait. */
  dispatch(options: Dispatcher.DispatchOptions, handler: CallHandler): boolean {
    const content = this.#contentOf(options);
    if (content instanceof Error) new CallExchange(handler).failLater(content);
    else this.#admit(new CallExchange(handler, content));
    return this.#queue.length === 0;
  }

  stats(): CallPoolStats {
    const connected = this.#open.size;
    const free = this.#idle.length + this.#soonFree();
    return { connected, free, pending: this.#queue.length, running: connected - free };
  }

  /** Requests that are here already are served. */
  close(): Promise<void> {
    this.#refusal ??= 'closed';
    for (const connection of this.#idle) connection.close();
    this.#endWhenEmpty();
    return this.#emptied.promise;
  }

  destroy(error: Error): Promise<void> {
    this.#refusal = 'destroyed';
    for (const exchange of this.#queue.splice(0)) exchange.fail(error);
    for (const connection of this.#open.values()) connection.destroy(error);
    this.#endWhenEmpty();
    return this.#emptied.promise;
  }

  /**
   * Not used before the event loop has polled once more: a server that closes without having said so
   * does it right behind an answer, and what is written into that may or may not have been acted on.
   */
  onAnswered(connection: HttpConnection): void {
    this.#answered.push(connection);
    if (!this.#isTurnWatched) setImmediate(endTurn, this);
    this.#isTurnWatched = true;
  }

  endTurn(): void {
    const settled = this.#settling;
    this.#settling = this.#answered;
    this.#answered = [];
    this.#isTurnWatched = this.#settling.length > 0;
    if (this.#isTurnWatched) setImmediate(endTurn, this);
    for (const connection of settled) this.onFree(connection);
  }

  onFree(connection: HttpConnection): void {
    while (connection.isUsable) {
      const exchange = this.#queue.shift();
      if (exchange === undefined) {
        this.#putAside(connection);
        return;
      }
      if (connection.start(exchange)) return;
    }
  }

  onClosed(connection: HttpConnection, unsent: CallExchange | undefined): void {
    this.#open.delete(connection);
    remove(this.#idle, connection);
    remove(this.#answered, connection);
    remove(this.#settling, connection);
    if (unsent !== undefined) {
      if (this.#refusal === 'destroyed') unsent.fail(new errors.ClientDestroyedError());
      else if (!this.#startIdle(unsent)) this.#queue.unshift(unsent);
    }
    this.#connectMore();
    this.#endWhenEmpty();
  }

  #contentOf(options: Dispatcher.DispatchOptions): ExchangeContent | Error {
    if (this.#refusal === 'destroyed') return new errors.ClientDestroyedError();
    if (this.#refusal === 'closed') return new errors.ClientClosedError();
    try {
      return this.#prepare(options);
    } catch (error) {
      return error as Error;
    }
  }

  #prepare(options: Dispatcher.DispatchOptions): ExchangeContent {
    const { body = null, headersTimeout, bodyTimeout } = options;
    if (body !== null && typeof body !== 'string' && !(body instanceof Uint8Array))
      throw new errors.InvalidArgumentError('the body is neither text nor bytes');
    const bodyBytes = body === null ? 0 : Buffer.byteLength(body);
    return {
      head: renderRequestHead(options, this.#hostLine, bodyBytes),
      body,
      bodyBytes,
      isHeadRequest: options.method === 'HEAD',
      headersTimeoutMs: headersTimeout ?? this.#options.headersTimeoutMs,
      bodyTimeoutMs: bodyTimeout ?? this.#options.bodyTimeoutMs,
    };
  }

  #admit(exchange: CallExchange): void {
    if (this.#startIdle(exchange)) return;
    if (this.#queue.length >= this.#sweepAt) this.#forgetGone();
    this.#queue.push(exchange);
    this.#connectMore();
  }

  /** False when there is no idle connection that can be used. */
  #startIdle(exchange: CallExchange): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    for (let found = this.#idle.pop(); found !== undefined; found = this.#idle.pop()) {
      if (!found.isUsable) continue;
      if (found.isExpired(nowMs)) {
        found.close();
        continue;
      }
      if (found.idleForMs(nowMs) > TRUSTED_IDLE_MS) found.startSoon(exchange);
      else if (!found.start(exchange)) this.onFree(found);
      return true;
    }
    return false;
  }

  #putAside(connection: HttpConnection): void {
    if (this.#refusal !== undefined) {
      connection.close();
      return;
    }
    connection.rest(this.#options.clock.monotonicMs());
    this.#idle.push(connection);
  }

  /** Those that were given up while no socket came: they would be kept, and fail in place of others. */
  #forgetGone(): void {
    this.#queue = this.#queue.filter(({ isGone }) => !isGone);
    this.#sweepAt = Math.max(SWEEP_AT, 2 * this.#queue.length);
  }

  #connectMore(): void {
    while (
      this.#socketsInSight() < this.#queue.length &&
      this.#attempts.size + this.#open.size < this.#options.connections
    )
      this.#connect();
  }

  #socketsInSight(): number {
    return this.#attempts.size + this.#soonFree();
  }

  #soonFree(): number {
    return this.#answered.length + this.#settling.length;
  }

  #connect(): void {
    const attempt = new Attempt();
    this.#attempts.add(attempt);
    attempt.connecting = this.#options.connect((...[error, opened]) => {
      this.#attempts.delete(attempt);
      if (error === null) this.#onOpened(opened);
      else this.#onRefused(error);
      this.#endWhenEmpty();
    });
  }

  #onOpened(socket: Socket): void {
    const { clock, keepAliveMs } = this.#options;
    const connection = new HttpConnection(socket, { owner: this, clock, keepAliveMs });
    this.#open.add(connection);
    this.onFree(connection);
  }

  /** Costs the one request that has no other socket in sight. */
  #onRefused(error: Error): void {
    this.#forgetGone();
    if (this.#queue.length > this.#socketsInSight()) this.#queue.shift()?.fail(error);
    this.#connectMore();
  }

  #endWhenEmpty(): void {
    if (this.#refusal === undefined || this.#queue.length > 0) return;
    for (const { connecting } of [...this.#attempts.values()])
      connecting?.fail(new errors.InformationalError('no request waits for this connection'));
    if (this.#open.size === 0 && this.#attempts.size === 0) this.#emptied.resolve();
  }
}

function endTurn(pool: CallPool): void {
  pool.endTurn();
}

function remove(connections: HttpConnection[], connection: HttpConnection): void {
  const place = connections.indexOf(connection);
  if (place !== -1) connections.splice(place, 1);
}
