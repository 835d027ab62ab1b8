// What the connector knows of the egress proxy: whether anything may go out through it now, and how a
// socket that ends at the target is had. In proxy mode there is no other way out: nothing here or
// behind it falls back to a direct connection.

import type { Socket } from 'node:net';

import type { ErrorCode } from '#core/errors.ts';
import type { TunnelTarget } from './connect-answer.ts';
import type { DenyReason, FailureReason } from './egress-policy.ts';

/** Why there is no tunnel. Nothing of a request was sent. */
export interface ProxyRefusal {
  readonly kind: 'closed';
  /** `deny` is somebody's policy, `failed` says nothing about what is allowed. */
  readonly verdict: 'deny' | 'failed';
  readonly code: ErrorCode;
  readonly reason: DenyReason | FailureReason;
  /** Of the proxy. */
  readonly address?: string;
  /** A status, a range or a code of Node's; never foreign text. */
  readonly detail?: string;
}

export type ProxyOutcome =
  | {
      readonly kind: 'open';
      /** Plain, or TLS to the proxy; what is written to it arrives at the target. */
      readonly socket: Socket;
      /** Of the proxy. */
      readonly address: string;
    }
  | ProxyRefusal;

export interface ProxyRequest extends TunnelTarget {
  readonly timeoutMs: number;
}

export interface EgressProxy {
  /** Whether the names of targets are resolved here, too, and every address judged. */
  readonly resolvesLocally: boolean;
  /** Why nothing may go through it now. Asked on every request, kept-alive tunnels included. */
  refusal(): ProxyRefusal | undefined;
  /** Calls back once, never within the call; what it returns gives the tunnel up. */
  connect(request: ProxyRequest, done: (outcome: ProxyOutcome) => void): () => void;
}
