// The port between the agent API and everything behind it. The agent API has parsed, named and
// admitted the request; the relay answers it, now or later, exactly once.

import type { AgentExchange, Era } from '#sidecar/agent-api/exchange.ts';

/** What the agent API needs to answer initialize and server/discover. */
export interface RelayCapabilities {
  readonly tools: { readonly listChanged?: boolean };
}

export interface Relay {
  /** tools/list from the catalog; may wait for servers that were never listed, bounded by their connect timeouts. */
  listTools(exchange: AgentExchange): void;
  /** tools/call to the one server that the snapshot names. */
  callTool(exchange: AgentExchange): void;
  /** True when an alias exists in the current configuration (for the 404 of `/servers/{alias}/mcp`). */
  hasAlias(alias: string): boolean;
  /** Starts listing all servers in the background, so that the first agent finds a warm catalog. */
  warmUp(era: Era): void;
}

/** One server in GET /status. */
export interface ServerStatus {
  readonly alias: string;
  readonly namespace: string;
  readonly name: string;
  readonly state: 'pending' | 'ok' | 'unavailable';
  /** An error code and a sentence when unavailable. */
  readonly reason?: string;
  readonly era?: Era;
  readonly protocolVersion?: string;
  readonly serverInfo?: Readonly<Record<string, unknown>>;
  readonly tools: readonly {
    readonly name: string;
    readonly remoteName: string;
    readonly title?: string;
    readonly description?: string;
  }[];
  /** Tools that are not served, and why. */
  readonly rejectedTools: readonly { readonly name: string; readonly reason: string }[];
  readonly connections: {
    readonly inFlight: number;
    readonly queued: number;
    readonly sockets: number;
  };
}
