// Opens the sockets of one pool, step by step: a literal is judged as it is (no lookup runs for
// one), a name is resolved and every address judged, the judged addresses and no others are
// dialled, the peer of the open socket is judged before a byte is written to it, and TLS proves the
// name that was judged. In proxy mode the way to the target is a tunnel, and TLS runs inside it: the
// judged addresses are not dialled then, and there is no other way out. One deadline covers all of
// it. Nothing here follows, retries or shares.

import type { Socket } from 'node:net';

import type { buildConnector } from 'undici';

import type { Clock } from '#core/clock.ts';
import { ConnectAttempt } from './connect-attempt.ts';
import { describeConnectError } from './connect-failure.ts';
import { decideAddress, decideLiteral } from './decide-egress.ts';
import { Dial, openSystemSocket } from './dial-addresses.ts';
import type { OpenSocket } from './dial-addresses.ts';
import { EgressError } from './egress-error.ts';
import type {
  EgressDecision,
  EgressPolicy,
  EgressStage,
  OnEgressDecision,
} from './egress-policy.ts';
import type { EgressProxy, ProxyRefusal } from './egress-proxy.ts';
import { createPinnedLookup, lookupTimeoutMs } from './pinned-lookup.ts';
import type { PinnedLookup, ResolveHost } from './pinned-lookup.ts';
import { TlsClient } from './tls-client.ts';

export interface ConnectorOptions {
  readonly policy: EgressPolicy;
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
  readonly connectTimeoutMs: number;
  readonly caBundle?: string | undefined;
  /** In place of one that is made from the host and the bundle; lives longer than the connector. */
  readonly tls?: TlsClient | undefined;
  /** The only way out, where there is one. */
  readonly proxy?: EgressProxy | undefined;
  readonly clock: Clock;
  readonly onDecision: OnEgressDecision;
  readonly resolve?: ResolveHost | undefined;
  readonly openSocket?: OpenSocket | undefined;
}

/** Opens one socket; calls back once, never within the call. */
export type GuardedConnect = (callback: buildConnector.Callback) => ConnectAttempt;

export function createGuardedConnector(options: ConnectorOptions): GuardedConnect {
  const { isTls, host, caBundle } = options;
  const tls = isTls ? (options.tls ?? new TlsClient({ host, caBundle })) : undefined;
  return (callback) => new Connecting(options, tls, callback).start();
}

/** One attempt, in the order of its steps. */
class Connecting {
  readonly #options: ConnectorOptions;
  readonly #tls: TlsClient | undefined;
  readonly #attempt: ConnectAttempt;
  readonly #startedMs: number;
  /** Until the first record after the lookup. */
  #resolvingSinceMs: number | undefined;
  #lookupMs: number | undefined;

  /** Addresses that the attempt waits for. */
  #pending: () => readonly string[] = () => [];

  constructor(
    options: ConnectorOptions,
    tls: TlsClient | undefined,
    callback: buildConnector.Callback,
  ) {
    this.#options = options;
    this.#tls = tls;
    this.#attempt = new ConnectAttempt(callback);
    this.#startedMs = options.clock.monotonicMs();
  }

  start(): ConnectAttempt {
    const { policy, host, port, proxy, clock, connectTimeoutMs } = this.#options;
    const literal = decideLiteral(policy, host, port);
    if (literal?.kind === 'deny') {
      this.#record({ verdict: 'deny', ...literal, address: host });
      queueMicrotask(() => this.#attempt.fail(new EgressError('EGRESS_DENIED', literal)));
      return this.#attempt;
    }
    try {
      this.#tls?.prepare();
    } catch (error) {
      queueMicrotask(() => this.#fail(error));
      return this.#attempt;
    }
    this.#attempt.startDeadline(clock, connectTimeoutMs, () => this.#timedOut());
    if (literal === undefined && proxy?.resolvesLocally !== false) this.#resolve();
    else this.#reach([host]);
    return this.#attempt;
  }

  #resolve(): void {
    const { host, clock, connectTimeoutMs } = this.#options;
    this.#resolvingSinceMs = clock.monotonicMs();
    const lookup: PinnedLookup = createPinnedLookup({
      ...this.#options,
      timeoutMs: lookupTimeoutMs(connectTimeoutMs),
      onDecision: (decision) => {
        this.#endLookup();
        this.#record(decision);
      },
    });
    const cancel = lookup(host, (outcome) => {
      this.#endLookup();
      if (this.#attempt.isSettled) return;
      if (outcome.kind === 'refused') this.#attempt.fail(outcome.error);
      else this.#reach(outcome.addresses);
    });
    this.#attempt.onRelease(cancel);
  }

  /** To the judged addresses, or through the proxy. */
  #reach(addresses: readonly string[]): void {
    const { proxy } = this.#options;
    if (proxy === undefined) this.#dial(addresses);
    else this.#tunnel(proxy);
  }

  #tunnel(proxy: EgressProxy): void {
    const { host, port, clock, connectTimeoutMs } = this.#options;
    const leftMs = connectTimeoutMs - (clock.monotonicMs() - this.#startedMs);
    const cancel = proxy.connect({ host, port, timeoutMs: Math.max(1, leftMs) }, (outcome) => {
      if (outcome.kind === 'closed') {
        this.#proxyRefused(outcome);
        return;
      }
      this.#attempt.hold(outcome.socket);
      this.#secure(outcome.socket, outcome.address);
    });
    this.#attempt.onRelease(cancel);
  }

  #proxyRefused({ verdict, code, reason, address, detail }: ProxyRefusal): void {
    if (this.#attempt.isSettled) return;
    const place = {
      ...(address === undefined ? {} : { address }),
      ...(detail === undefined ? {} : { detail }),
    };
    this.#record({ verdict, stage: 'proxy', reason, ...place });
    this.#attempt.fail(new EgressError(code, { stage: 'proxy', reason }));
  }

  #dial(addresses: readonly string[]): void {
    const { port, clock, openSocket = openSystemSocket } = this.#options;
    const dial = new Dial({
      addresses,
      port,
      clock,
      openSocket,
      onOpened: (socket) => this.#judgePeer(socket),
      onFailure: ({ address, error }) => this.#recordFailure(error, address),
      onFailed: ({ error }) => this.#fail(error),
    });
    this.#pending = () => dial.pending;
    this.#attempt.onRelease(() => dial.cancel());
    dial.start();
  }

  /** The last backstop: whatever chose the address, the peer of the open socket is judged. */
  #judgePeer(socket: Socket): void {
    this.#attempt.hold(socket);
    const { policy, host, port } = this.#options;
    const address = socket.remoteAddress;
    if (address === undefined) {
      this.#record({ verdict: 'failed', stage: 'peer', reason: 'peer-gone' });
      const gone = { stage: 'peer', reason: 'peer-gone' } as const;
      this.#attempt.fail(new EgressError('SERVER_UNAVAILABLE', gone));
      return;
    }
    const decision = decideAddress(policy, { host, port, address, stage: 'peer' });
    if (decision.kind === 'deny') {
      this.#record({ verdict: 'deny', ...decision, address });
      this.#attempt.fail(new EgressError('EGRESS_DENIED', decision));
      return;
    }
    this.#secure(socket, address);
  }

  #secure(socket: Socket, address: string): void {
    this.#pending = () => [address];
    if (this.#tls === undefined) {
      this.#succeed(socket, address);
      return;
    }
    const secured = this.#tls.secure(socket, {
      onSecured: () => this.#succeed(secured, address),
      onFailed: (error) => {
        if (this.#attempt.isSettled) return;
        this.#recordFailure(error, address);
        this.#fail(error);
      },
    });
    this.#attempt.hold(secured);
  }

  #succeed(socket: Socket, address: string): void {
    const stage: EgressStage = this.#options.proxy === undefined ? 'peer' : 'proxy';
    if (this.#attempt.succeed(socket))
      this.#record({ verdict: 'allow', stage, reason: 'ok', address });
  }

  #timedOut(): EgressError {
    const timeout = { verdict: 'failed', stage: 'connect', reason: 'connect-timeout' } as const;
    const pending = this.#pending();
    for (const address of pending) this.#record({ ...timeout, address });
    if (pending.length === 0) this.#record(timeout);
    return new EgressError('SERVER_UNAVAILABLE', { stage: 'connect', reason: 'connect-timeout' });
  }

  #fail(cause: unknown): void {
    if (cause instanceof EgressError) {
      this.#attempt.fail(cause);
      return;
    }
    const { reason } = describeConnectError(cause);
    this.#attempt.fail(new EgressError('SERVER_UNAVAILABLE', { stage: 'connect', reason, cause }));
  }

  #recordFailure(error: unknown, address: string): void {
    const { reason, code } = describeConnectError(error);
    const detail = code === undefined ? {} : { detail: code };
    this.#record({ verdict: 'failed', stage: 'connect', reason, address, ...detail });
  }

  #endLookup(): void {
    if (this.#resolvingSinceMs === undefined) return;
    this.#lookupMs = this.#msSince(this.#resolvingSinceMs);
    this.#resolvingSinceMs = undefined;
  }

  #record(decision: Omit<EgressDecision, 'host' | 'port' | 'durationMs'>): void {
    const { host, port, onDecision } = this.#options;
    const durationMs = this.#msSince(this.#startedMs);
    const lookup = this.#lookupMs === undefined ? {} : { lookupMs: this.#lookupMs };
    this.#lookupMs = undefined;
    onDecision({ ...decision, host, port, durationMs, ...lookup });
  }

  #msSince(startMs: number): number {
    return Math.round((this.#options.clock.monotonicMs() - startMs) * 10) / 10;
  }
}
