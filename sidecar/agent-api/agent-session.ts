// A legacy (2025) session of one agent: who opened it, in which version, and what hangs on it.
// The id is random and is no credential: every use is checked against the principal.

import type { ProtocolVersion } from '#core/config/sidecar-config.ts';

import type { InFlightRequests } from './in-flight-requests.ts';
import type { Principal } from './exchange.ts';

export interface AgentSession {
  readonly id: string;
  readonly protocolVersion: ProtocolVersion;
  readonly principal: Principal;
  /** The alias of `/servers/{alias}/mcp` that the session was opened on; undefined for `/mcp`. */
  readonly alias: string | undefined;
  /** Client capabilities as sent with initialize. */
  readonly clientCapabilities: Readonly<Record<string, unknown>>;
  /** Requests in flight by id: a second one with the same id is refused (JSON-RPC, pains of shared ids). */
  readonly inFlight: InFlightRequests;
  /** Runs when the session ends (DELETE, expiry, drain); relay closes its upstream sessions here. The result takes the listener back. */
  onClosed(listener: () => Promise<void> | void): () => void;
}
