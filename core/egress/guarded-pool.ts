// The one door to remote servers: keep-alive connections to one origin under one immutable
// policy. A pool belongs to one partition; sockets, TLS sessions and verdicts are never shared.
// It never follows a redirect, never retries, never reads proxy settings from the environment.
// The URL is judged when the pool is made and, with the request's own parts, on every dispatch: a
// kept-alive socket skips lookup and connect, so a check that lives only there would be no check.
// Calls go over our own lean client, everything else over undici: two sets of sockets, opened by
// one and the same guarded connector.
// A changed policy is a new pool: close() lets the old one finish, destroy() ends it at once.

import type { IncomingHttpHeaders } from 'node:http';

import { errors } from 'undici';
import type { Dispatcher, Pool } from 'undici';

import { systemClock } from '#core/clock.ts';
import type { Clock } from '#core/clock.ts';
import { FairleadError } from '#core/errors.ts';
import { CallExchange } from './call-exchange.ts';
import type { CallHandler } from './call-exchange.ts';
import { CallPool } from './call-pool.ts';
import { createControlPool } from './control-pool.ts';
import { bareHost, decideUrl, portOf } from './decide-egress.ts';
import { decideRedirect, headerValues } from './decide-redirect.ts';
import { EgressError } from './egress-error.ts';
import type {
  DenyReason,
  EgressDecision,
  EgressPolicy,
  EgressStage,
  EgressVerdict,
  OnEgressDecision,
} from './egress-policy.ts';
import type { EgressProxy, ProxyRefusal } from './egress-proxy.ts';
import type { OpenSocket } from './dial-addresses.ts';
import { createGuardedConnector } from './guarded-connector.ts';
import type { ResolveHost } from './pinned-lookup.ts';

export type { EgressDecision, ResolveHost };

export interface GuardedPoolOptions {
  /** `https://host[:port]`; a path is ignored. */
  readonly origin: string;
  readonly policy: EgressPolicy;
  /** Sockets of `dispatch` at once; requests beyond wait in the pool's queue. */
  readonly connections: number;
  /** Sockets of `request` at once, besides those. */
  readonly controlConnections?: number;
  readonly keepAliveMs: number;
  /** DNS + TCP + TLS. */
  readonly connectTimeoutMs: number;
  /** From the end of the request to the headers of the answer; absent = the caller's own deadline only. */
  readonly headersTimeoutMs?: number | undefined;
  /** Legal silence within a body; absent = the caller's own deadline only. */
  readonly bodyTimeoutMs?: number | undefined;
  /** PEM certificates, trusted besides the default roots. */
  readonly caBundle?: string | undefined;
  /** One record per connection and per refused request; the only place that names addresses. */
  readonly onDecision?: OnEgressDecision | undefined;
  /** In place of the system's resolver, for tests. */
  readonly resolve?: ResolveHost | undefined;
  /** In place of a connection to the address that was judged, for tests. */
  readonly openSocket?: OpenSocket | undefined;
  /** The only way out, where there is one. */
  readonly proxy?: EgressProxy | undefined;
  readonly clock?: Clock | undefined;
}

export interface GuardedPoolStats {
  /** Open sockets. */
  readonly connected: number;
  /** Open sockets without a request. */
  readonly free: number;
  /** Requests that wait for a socket, those in the pool's queue included. */
  readonly pending: number;
  readonly running: number;
  readonly queued: number;
}

export interface RedirectedAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Paths that this call has been sent to, the last one last. */
  readonly paths: readonly string[];
}

export interface GuardedPool extends AsyncDisposable {
  readonly origin: string;
  /**
   * undici's dispatch, for bodies that are text or bytes. Errors, refusals included, arrive at
   * `onResponseError`, never as a throw and never within the dispatch; until `onRequestStart` has
   * run nothing was written.
   */
  dispatch(options: Dispatcher.DispatchOptions, handler: CallHandler): boolean;
  /** undici's request, for control-plane exchanges; the caller reads or dumps the body. */
  request(options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData>;
  /**
   * Where a call is to be sent again, byte for byte: the path of a 307 or 308 within the origin,
   * whose server has said that it did not act. Undefined for every other answer.
   */
  redirectedPath(answer: RedirectedAnswer): string | undefined;
  stats(): GuardedPoolStats;
  /** Lets requests in flight finish; new ones fail as not sent. */
  close(): Promise<void>;
  /** Ends requests in flight with `error` at once. */
  destroy(error?: Error): Promise<void>;
}

/** Makes a pool; opens nothing. A denied origin makes a pool that refuses every request. */
export function createGuardedPool(options: GuardedPoolOptions): GuardedPool {
  return new JudgedPool(options);
}

class JudgedPool implements GuardedPool {
  readonly origin: string;
  readonly #host: string;
  readonly #port: number;
  readonly #policy: EgressPolicy;
  readonly #urlVerdict: EgressVerdict;
  readonly #proxy: EgressProxy | undefined;
  readonly #onDecision: OnEgressDecision;
  readonly #calls: CallPool;
  readonly #control: Pool;

  constructor(options: GuardedPoolOptions) {
    const url = new URL(options.origin);
    this.origin = url.origin;
    this.#host = bareHost(url);
    this.#port = portOf(url);
    this.#policy = options.policy;
    this.#urlVerdict = decideUrl(options.policy, url);
    this.#proxy = options.proxy;
    this.#onDecision = options.onDecision ?? (() => {});
    const clock = options.clock ?? systemClock;
    const connect = createGuardedConnector({
      host: this.#host,
      port: this.#port,
      onDecision: this.#onDecision,
      policy: options.policy,
      connectTimeoutMs: options.connectTimeoutMs,
      caBundle: options.caBundle,
      isTls: url.protocol === 'https:',
      clock,
      resolve: options.resolve,
      openSocket: options.openSocket,
      proxy: options.proxy,
    });
    const { connections, keepAliveMs, headersTimeoutMs = 0, bodyTimeoutMs = 0 } = options;
    const common = { url, connect, keepAliveMs, headersTimeoutMs, bodyTimeoutMs };
    this.#calls = new CallPool({ ...common, connections, clock });
    const controlConnections = options.controlConnections ?? DEFAULT_CONTROL_CONNECTIONS;
    this.#control = createControlPool({ ...common, connections: controlConnections });
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: CallHandler): boolean {
    const refusal = this.#refuse(options);
    if (refusal === undefined) return this.#calls.dispatch(options, handler);
    new CallExchange(handler).failLater(refusal);
    return true;
  }

  async request(options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> {
    const refusal = this.#refuse(options);
    if (refusal !== undefined) throw refusal;
    return this.#control.request(options);
  }

  redirectedPath({ status, headers, paths }: RedirectedAnswer): string | undefined {
    if (status !== 307 && status !== 308) return undefined;
    const visited = paths.map((path) => new URL(path, this.origin));
    const url = visited.at(-1);
    if (url === undefined) return undefined;
    const question = {
      policy: this.#policy,
      kind: 'mcp',
      method: 'POST',
      isPersonal: true,
      url,
      status,
      locations: headerValues(headers['location']),
      visited,
    } as const;
    const verdict = decideRedirect(question);
    const record = {
      stage: 'redirect',
      host: this.#host,
      port: this.#port,
      hop: visited.length,
    } as const;
    if (verdict.kind === 'deny')
      this.#onDecision({ ...record, verdict: 'deny', reason: verdict.reason });
    if (verdict.kind !== 'follow') return undefined;
    this.#onDecision({ ...record, verdict: 'allow', reason: 'ok' });
    return `${verdict.url.pathname}${verdict.url.search}`;
  }

  stats(): GuardedPoolStats {
    const calls = this.#calls.stats();
    const control = this.#control.stats;
    return {
      connected: calls.connected + control.connected,
      free: calls.free + control.free,
      pending: calls.pending + control.pending,
      running: calls.running + control.running,
      queued: calls.pending + control.queued,
    };
  }

  async close(): Promise<void> {
    const isEnding = this.#control.closed || this.#control.destroyed;
    await Promise.all([this.#calls.close(), isEnding ? undefined : this.#control.close()]);
  }

  async destroy(error?: Error): Promise<void> {
    // An EgressError says "not sent", which is not known of requests in flight.
    const reason =
      error instanceof EgressError ? new FairleadError(error.code, { cause: error.cause }) : error;
    await Promise.all([
      this.#calls.destroy(reason ?? new errors.ClientDestroyedError()),
      this.#control.destroy(reason ?? null),
    ]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.destroy();
  }

  /** On every request, kept-alive sockets included; allocates nothing unless it refuses. */
  #refuse(options: Dispatcher.DispatchOptions): EgressError | undefined {
    if (this.#urlVerdict.kind === 'deny')
      return this.#denied(this.#urlVerdict.stage, this.#urlVerdict.reason);
    if (options.origin !== undefined && options.origin !== this.origin)
      return this.#denied('request', 'other-origin');
    if (options.path.charCodeAt(0) !== SLASH || options.method === 'CONNECT' || options.upgrade) {
      return this.#denied('request', 'request-form');
    }
    if (hasHostHeader(options.headers)) return this.#denied('request', 'host-header');
    const refusal = this.#proxy?.refusal();
    return refusal === undefined ? undefined : this.#proxyRefused(refusal);
  }

  #proxyRefused({ verdict, code, reason }: ProxyRefusal): EgressError {
    const stage = 'proxy';
    this.#onDecision({ verdict, stage, reason, host: this.#host, port: this.#port });
    return new EgressError(code, { stage, reason });
  }

  #denied(stage: EgressStage, reason: DenyReason): EgressError {
    this.#onDecision({ verdict: 'deny', stage, reason, host: this.#host, port: this.#port });
    return new EgressError('EGRESS_DENIED', { stage, reason });
  }
}

const SLASH = 0x2f;

const DEFAULT_CONTROL_CONNECTIONS = 2;

/** A `host` header would reach another virtual server behind the judged address. */
function hasHostHeader(headers: Dispatcher.DispatchOptions['headers']): boolean {
  if (headers === undefined || headers === null) return false;
  if (Array.isArray(headers)) {
    for (let index = 0; index < headers.length; index += 2) {
      if (isHostName(headers[index])) return true;
    }
    return false;
  }
  if (Symbol.iterator in headers) return [...headers].some(([name]) => isHostName(name));
  return Object.keys(headers).some(isHostName);
}

function isHostName(name: unknown): boolean {
  return typeof name === 'string' && name.length === 4 && name.toLowerCase() === 'host';
}
