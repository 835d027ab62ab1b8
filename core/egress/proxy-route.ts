// The way to a target through one egress proxy: the proxy's own name is resolved and its addresses
// judged, the connection is opened by the same guarded connector as any other, TLS proves the
// proxy's name and shows our certificate, and one CONNECT is asked. Tunnels share nothing, are not
// kept here, and are never tried twice.

import type { Socket } from 'node:net';
import { createSecureContext } from 'node:tls';

import type { Clock } from '#core/clock.ts';
import type { OpenSocket } from './dial-addresses.ts';
import { EgressError } from './egress-error.ts';
import type { EgressDecision } from './egress-policy.ts';
import type { ProxyOutcome, ProxyRefusal, ProxyRequest } from './egress-proxy.ts';
import { createGuardedConnector } from './guarded-connector.ts';
import type { ResolveHost } from './pinned-lookup.ts';
import { proxyPolicy } from './proxy-policy.ts';
import type { ProxyAddress } from './proxy-policy.ts';
import { openTunnel } from './proxy-tunnel.ts';
import type { TunnelOutcome } from './proxy-tunnel.ts';
import { TlsClient } from './tls-client.ts';
import { certificatesOf } from './trust-roots.ts';

/** What TLS to the proxy needs. Compared by identity: a changed certificate is another object. */
export interface ProxyIdentity {
  /** PEM; in place of the default roots. */
  readonly caPem: string | undefined;
  readonly client: { readonly certPem: string; readonly keyPem: string } | undefined;
}

export interface ProxyRouteOptions {
  readonly proxy: ProxyAddress;
  /** As of now; `pending` while a certificate is expected and not there. */
  readonly identity: () => ProxyIdentity | 'pending';
  readonly clock: Clock;
  readonly resolve?: ResolveHost | undefined;
  readonly openSocket?: OpenSocket | undefined;
}

/** Of the time for a whole connection: what is left is for the tunnel, and for TLS to the target. */
const PROXY_SHARE = 0.7;
const TUNNEL_SHARE = 0.9;

export class ProxyRoute {
  readonly #options: ProxyRouteOptions;
  #tls: { readonly identity: ProxyIdentity; readonly client: TlsClient } | undefined;

  constructor(options: ProxyRouteOptions) {
    this.#options = options;
  }

  /** Calls back once, never within the call; what it returns gives the tunnel up. */
  connect(request: ProxyRequest, done: (outcome: ProxyOutcome) => void): () => void {
    const tls = this.#tlsClient();
    if (tls === 'pending') {
      const timer = this.#options.clock.setTimer(0, () => done(failed('proxy-certificate')));
      return () => timer.cancel();
    }
    return new Reaching(this.#options, request, done).start(tls);
  }

  /** Kept while the certificate stays: reading certificates costs more than a handshake. */
  #tlsClient(): TlsClient | 'pending' | undefined {
    const { proxy, identity } = this.#options;
    if (!proxy.isTls) return undefined;
    const current = identity();
    if (current === 'pending') return 'pending';
    if (this.#tls?.identity === current) return this.#tls.client;
    try {
      const client = new TlsClient({
        host: proxy.host,
        secureContext: contextOf(current),
        // Squid ends resumed handshakes of clients with a certificate (an alert, internal error), and
        // a resumed one would show the certificate of before.
        isNeverResumed: true,
      });
      this.#tls = { identity: current, client };
      return client;
    } catch {
      // Not even the error goes on: it came from reading a key.
      return 'pending';
    }
  }
}

function contextOf({ caPem, client }: ProxyIdentity): ReturnType<typeof createSecureContext> {
  return createSecureContext({
    minVersion: 'TLSv1.2',
    ...(caPem === undefined ? {} : { ca: [...certificatesOf(caPem)] }),
    ...(client === undefined ? {} : { cert: client.certPem, key: client.keyPem }),
  });
}

/** One tunnel on its way. */
class Reaching {
  readonly #options: ProxyRouteOptions;
  readonly #request: ProxyRequest;
  readonly #done: (outcome: ProxyOutcome) => void;
  readonly #startedMs: number;
  #decision: EgressDecision | undefined;
  #giveUp: () => void = () => {};
  #isOver = false;

  constructor(
    options: ProxyRouteOptions,
    request: ProxyRequest,
    done: (outcome: ProxyOutcome) => void,
  ) {
    this.#options = options;
    this.#request = request;
    this.#done = done;
    this.#startedMs = options.clock.monotonicMs();
  }

  start(tls: TlsClient | undefined): () => void {
    const { proxy, clock, resolve, openSocket } = this.#options;
    const connect = createGuardedConnector({
      policy: proxyPolicy(proxy),
      host: proxy.host,
      port: proxy.port,
      isTls: proxy.isTls,
      tls,
      connectTimeoutMs: Math.ceil(this.#request.timeoutMs * PROXY_SHARE),
      clock,
      resolve,
      openSocket,
      onDecision: (decision) => {
        this.#decision = decision;
      },
    });
    const attempt = connect((...[error, socket]) => {
      if (this.#isOver) socket?.destroy();
      else if (error === null) this.#ask(socket);
      else this.#end(this.#unreached(error));
    });
    this.#giveUp = () => attempt.fail(new Error('given up'));
    return () => {
      this.#isOver = true;
      this.#giveUp();
    };
  }

  #ask(socket: Socket): void {
    const { clock } = this.#options;
    const { host, port, timeoutMs } = this.#request;
    const address = socket.remoteAddress ?? '';
    const leftMs = timeoutMs - (clock.monotonicMs() - this.#startedMs);
    this.#giveUp = openTunnel(
      {
        socket,
        target: { host, port },
        timeoutMs: Math.max(1, Math.floor(leftMs * TUNNEL_SHARE)),
        clock,
      },
      (outcome) =>
        this.#end(
          outcome.kind === 'open' ? { kind: 'open', socket, address } : closed(outcome, address),
        ),
    );
  }

  /** The last record says which address it was, and what was wrong with it. */
  #unreached(error: Error): ProxyRefusal {
    const { address, detail } = this.#decision ?? {};
    const place = {
      ...(address === undefined ? {} : { address }),
      ...(detail === undefined ? {} : { detail }),
    };
    if (!(error instanceof EgressError)) return { ...failed('connect-failed'), ...place };
    const verdict = error.code === 'EGRESS_DENIED' ? 'deny' : 'failed';
    return { kind: 'closed', verdict, code: error.code, reason: error.reason, ...place };
  }

  #end(outcome: ProxyOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#done(outcome);
  }
}

function closed(outcome: Exclude<TunnelOutcome, { kind: 'open' }>, address: string): ProxyRefusal {
  const place = {
    address,
    ...(outcome.status === undefined ? {} : { detail: String(outcome.status) }),
  };
  if (outcome.kind === 'failed') return { ...failed(outcome.reason), ...place };
  return {
    kind: 'closed',
    verdict: 'deny',
    code: 'EGRESS_DENIED',
    reason: 'proxy-denied',
    ...place,
  };
}

function failed(reason: ProxyRefusal['reason']): ProxyRefusal {
  return { kind: 'closed', verdict: 'failed', code: 'SERVER_UNAVAILABLE', reason };
}
