// Requests to whatever host the policy allows, for what is not a call: discovery, keys, the OAuth
// endpoints. Every hop of a redirect goes through the whole pipeline again, by hand (R14); what
// carries a secret follows none. It never rejects: each exchange ends in yes, no or unknown. State
// (sockets, TLS sessions) is this client's own and ends with it.

import type { IncomingHttpHeaders } from 'node:http';

import type { Clock } from '#core/clock.ts';
import type { ErrorCode } from '#core/errors.ts';
import { USER_AGENT } from '#core/version.ts';
import { collectAnswer } from './collect-answer.ts';
import { bareHost, decideUrl, portOf } from './decide-egress.ts';
import { decideRedirect, headerValues } from './decide-redirect.ts';
import type { RequestKind } from './decide-redirect.ts';
import type { OpenSocket } from './dial-addresses.ts';
import type {
  DenyReason,
  EgressPolicy,
  EgressStage,
  FailureReason,
  OnEgressDecision,
} from './egress-policy.ts';
import type { EgressProxy } from './egress-proxy.ts';
import { createGuardedPool } from './guarded-pool.ts';
import type { GuardedPool, ResolveHost } from './guarded-pool.ts';

export type { RequestKind };

export interface ExchangeRequest {
  readonly kind: RequestKind;
  readonly url: URL;
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Lower-case names; none of those that the transport owns. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

export interface ExchangeLimits {
  /** For the whole exchange, redirects included. */
  readonly deadlineMs?: number;
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
}

/** `hop`: 0 is the first URL, 1 the first redirect, and so on. */
export type ExchangeOutcome =
  | {
      readonly kind: 'response';
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly body: Buffer;
      /** That answered. */
      readonly url: URL;
      readonly hops: number;
    }
  | {
      readonly kind: 'denied';
      readonly stage: EgressStage;
      readonly reason: DenyReason | FailureReason;
      readonly hop: number;
    }
  | {
      readonly kind: 'failed';
      readonly code: ErrorCode;
      readonly reason: string;
      readonly hop: number;
      readonly wasSent: boolean;
    };

export interface GuardedClientOptions {
  readonly policy: EgressPolicy;
  readonly caBundle?: string | undefined;
  readonly clock: Clock;
  readonly connectTimeoutMs: number;
  readonly onDecision?: OnEgressDecision | undefined;
  readonly resolve?: ResolveHost | undefined;
  readonly openSocket?: OpenSocket | undefined;
  /** The only way out, where there is one. */
  readonly proxy?: EgressProxy | undefined;
}

export interface GuardedClient extends AsyncDisposable {
  exchange(request: ExchangeRequest, limits?: ExchangeLimits): Promise<ExchangeOutcome>;
}

const DEFAULT_DEADLINE_MS = 10_000;
const DEFAULT_MAX_BYTES = 1_048_576;
const CONNECTIONS_PER_ORIGIN = 2;
const KEEP_ALIVE_MS = 4_000;
/** What another origin may be told: what we are and what we can read. */
const SAFE_HEADERS = ['accept', 'accept-language', 'mcp-protocol-version'];
const FORBIDDEN_HEADER =
  /^(host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|origin|user-agent|accept-encoding|keep-alive|proxy-.*)$/;

export function createGuardedClient(options: GuardedClientOptions): GuardedClient {
  return new PolicyClient(options);
}

class PolicyClient implements GuardedClient {
  readonly #options: GuardedClientOptions;
  readonly #onDecision: OnEgressDecision;
  readonly #pools = new Map<string, GuardedPool>();

  constructor(options: GuardedClientOptions) {
    this.#options = options;
    this.#onDecision = options.onDecision ?? (() => {});
  }

  async exchange(request: ExchangeRequest, limits: ExchangeLimits = {}): Promise<ExchangeOutcome> {
    const forbidden = Object.keys(request.headers).find((name) => FORBIDDEN_HEADER.test(name));
    if (forbidden !== undefined) throw new TypeError(`${forbidden} is set by the transport`);
    const { policy, clock } = this.#options;
    const verdict = decideUrl(policy, request.url);
    if (verdict.kind === 'deny') return this.#denied(request.url, { ...verdict, hop: 0 });
    const endsMs = clock.monotonicMs() + (limits.deadlineMs ?? DEFAULT_DEADLINE_MS);
    const visited = [request.url];
    let headers = request.headers;
    for (let url = request.url; ; ) {
      const hop = visited.length - 1;
      const answer = await this.#send({ ...request, url, headers }, { ...limits, endsMs });
      if (answer.kind !== 'answer') return { ...answer, hop };
      const { status } = answer;
      const locations = headerValues(answer.headers['location']);
      const next = decideRedirect({
        policy,
        kind: request.kind,
        method: request.method,
        isPersonal: isPersonal(request),
        url,
        status,
        locations,
        visited,
      });
      if (next.kind === 'final')
        return {
          kind: 'response',
          status,
          headers: answer.headers,
          body: answer.body,
          url,
          hops: hop,
        };
      if (next.kind === 'deny')
        return this.#denied(next, { stage: 'redirect', reason: next.reason, hop: hop + 1 });
      this.#onDecision({
        verdict: 'allow',
        stage: 'redirect',
        reason: 'ok',
        host: bareHost(next.url),
        port: portOf(next.url),
        hop: hop + 1,
      });
      if (!next.isSameOrigin) headers = safeHeaders(headers);
      url = next.url;
      visited.push(url);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  #send(request: ExchangeRequest, limits: ExchangeLimits & { readonly endsMs: number }) {
    const { clock } = this.#options;
    const { url, method, headers, body } = request;
    return collectAnswer(
      this.#poolOf(url.origin),
      {
        path: `${url.pathname}${url.search}`,
        method,
        headers: ['user-agent', USER_AGENT, ...Object.entries(headers).flat()],
        body: body ?? null,
      },
      {
        clock,
        deadlineMs: limits.endsMs - clock.monotonicMs(),
        maxBytes: limits.maxBytes ?? DEFAULT_MAX_BYTES,
        signal: limits.signal,
      },
    );
  }

  #poolOf(origin: string): GuardedPool {
    const known = this.#pools.get(origin);
    if (known !== undefined) return known;
    const pool = createGuardedPool({
      ...this.#options,
      origin,
      connections: CONNECTIONS_PER_ORIGIN,
      keepAliveMs: KEEP_ALIVE_MS,
    });
    this.#pools.set(origin, pool);
    return pool;
  }

  #denied(
    at: URL | { readonly host: string; readonly port: number },
    denial: { readonly stage: EgressStage; readonly reason: DenyReason; readonly hop: number },
  ): ExchangeOutcome {
    const { stage, reason, hop } = denial;
    const [host, port] = at instanceof URL ? [bareHost(at), portOf(at)] : [at.host, at.port];
    const redirect = hop === 0 ? {} : { hop };
    this.#onDecision({ verdict: 'deny', stage, reason, host, port, ...redirect });
    return { kind: 'denied', stage, reason, hop };
  }
}

/** Taking the token out and going on would ask another origin for what it never meant for us. */
function isPersonal({ headers, body }: ExchangeRequest): boolean {
  const names = Object.keys(headers);
  return (
    body !== undefined ||
    names.some((name) => name === 'authorization' || name === 'mcp-session-id')
  );
}

function safeHeaders(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => SAFE_HEADERS.includes(name)),
  );
}
