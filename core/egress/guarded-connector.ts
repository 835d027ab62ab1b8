// Opens the sockets of one pool: the literal is judged before anything is opened (no lookup runs
// for literals), every resolved address in the pinned lookup, and the peer once more when the
// socket is open, before anything may be written to it. One deadline covers DNS, TCP and TLS. The name
// that a certificate must prove is always the configured host, whatever headers a request has.

import { isIP } from 'node:net';
import type { Socket } from 'node:net';

import { buildConnector } from 'undici';

import type { Clock } from '#core/clock.ts';
import { ConnectAttempt } from './connect-attempt.ts';
import { describeConnectError } from './connect-failure.ts';
import { decideAddress, decideLiteral } from './decide-egress.ts';
import { EgressError } from './egress-error.ts';
import type { EgressPolicy, OnEgressDecision } from './egress-policy.ts';
import { createPinnedLookup, lookupTimeoutMs } from './pinned-lookup.ts';
import type { ResolveHost } from './pinned-lookup.ts';
import { trustOf } from './trust-roots.ts';

/** Long enough for a far server on a slow path; Node's 250 ms gives up on those. */
const ADDRESS_ATTEMPT_TIMEOUT_MS = 1000;

export interface ConnectorOptions {
  readonly policy: EgressPolicy;
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  readonly connectTimeoutMs: number;
  readonly caBundle?: string | undefined;
  readonly clock: Clock;
  readonly onDecision: OnEgressDecision;
  readonly resolve?: ResolveHost | undefined;
}

export function createGuardedConnector(options: ConnectorOptions): buildConnector.connector {
  let base: buildConnector.connector | undefined;
  return (target, callback) => {
    const attempt = new ConnectAttempt(callback);
    const refusal = refuseLiteral(options);
    if (refusal !== undefined) {
      queueMicrotask(() => attempt.fail(refusal));
      return undefined;
    }
    attempt.startDeadline(options.clock, options.connectTimeoutMs, () => connectTimedOut(options));
    try {
      base ??= createBaseConnector(options);
      const servername =
        target.protocol === 'https:' && isIP(options.host) === 0 ? options.host : '';
      const socket: unknown = base({ ...target, servername }, (error, opened) => {
        if (error === null) settlePeer(options, opened, attempt);
        else attempt.fail(connectError(options, error));
      });
      attempt.hold(socket as Socket);
      // A pool cancels an attempt that no request waits for any more through this socket.
      return socket;
    } catch (error) {
      queueMicrotask(() => attempt.fail(connectError(options, error)));
      return undefined;
    }
  };
}

function createBaseConnector(options: ConnectorOptions): buildConnector.connector {
  const secureContext = trustOf(options.caBundle);
  return buildConnector({
    // Our own deadline covers the whole attempt; undici's holds the socket weakly and is coarse.
    timeout: 0,
    lookup: createPinnedLookup({
      ...options,
      timeoutMs: lookupTimeoutMs(options.connectTimeoutMs),
    }),
    allowH2: false,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_TIMEOUT_MS,
    ...(secureContext === undefined ? {} : { secureContext }),
  });
}

function refuseLiteral({
  policy,
  host,
  port,
  onDecision,
}: ConnectorOptions): EgressError | undefined {
  const decision = decideLiteral(policy, host, port);
  if (decision === undefined || decision.kind === 'allow') return undefined;
  onDecision({ verdict: 'deny', ...decision, host, port, address: host });
  return new EgressError('EGRESS_DENIED', decision);
}

/** The last backstop: whatever chose the address, the peer of the open socket is judged. */
function settlePeer(options: ConnectorOptions, socket: Socket, attempt: ConnectAttempt): void {
  const { policy, host, port, onDecision } = options;
  const address = socket.remoteAddress;
  if (address === undefined) {
    onDecision({ verdict: 'failed', stage: 'peer', reason: 'peer-gone', host, port });
    attempt.fail(new EgressError('SERVER_UNAVAILABLE', { stage: 'peer', reason: 'peer-gone' }));
    return;
  }
  const decision = decideAddress(policy, { host, port, address, stage: 'peer' });
  if (decision.kind === 'deny') {
    onDecision({ verdict: 'deny', ...decision, host, port, address });
    attempt.fail(new EgressError('EGRESS_DENIED', decision));
    return;
  }
  if (attempt.succeed(socket))
    onDecision({ verdict: 'allow', stage: 'peer', reason: 'ok', host, port, address });
}

function connectTimedOut({ host, port, onDecision }: ConnectorOptions): EgressError {
  onDecision({ verdict: 'failed', stage: 'connect', reason: 'connect-timeout', host, port });
  return new EgressError('SERVER_UNAVAILABLE', { stage: 'connect', reason: 'connect-timeout' });
}

function connectError({ host, port, onDecision }: ConnectorOptions, error: unknown): Error {
  // From the lookup (already recorded), or a pool's own notice that nobody waits any more.
  if (error instanceof EgressError) return error;
  const { reason, code, address } = describeConnectError(error);
  if (code === 'UND_ERR_INFO' && error instanceof Error) return error;
  const detail = {
    ...(code === undefined ? {} : { detail: code }),
    ...(address === undefined ? {} : { address }),
  };
  onDecision({ verdict: 'failed', stage: 'connect', reason, host, port, ...detail });
  return new EgressError('SERVER_UNAVAILABLE', { stage: 'connect', reason, cause: error });
}
