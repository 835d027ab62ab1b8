// Contracts of the upstream folder: how the relay talks to one remote MCP server over one
// partition's pool. Nothing here knows agents, catalogs or permissions.

import type { IncomingHttpHeaders } from 'node:http';

import type { Clock } from '#core/clock.ts';
import type { ProtocolVersion, ServerConfig } from '#core/config/sidecar-config.ts';
import type { GuardedPool } from '#core/egress/guarded-pool.ts';
import type { ErrorCode } from '#core/errors.ts';
import type { Logger } from '#core/telemetry/log.ts';

import type { Deadlines } from './deadlines.ts';

/** One remote server as one partition reaches it. Made once per partition. */
export interface UpstreamTarget {
  readonly server: ServerConfig;
  readonly pool: GuardedPool;
  /** Path of the endpoint, e.g. `/mcp`. */
  readonly path: string;
  readonly clock: Clock;
  /** Of the requests to this server. */
  readonly deadlines: Deadlines;
  readonly log: Logger;
}

/** How a server is spoken to: the outcome of negotiation, remembered per partition and agent era. */
export interface Side {
  readonly era: 'modern' | 'legacy';
  readonly protocolVersion: ProtocolVersion;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly serverInfo: Readonly<Record<string, unknown>> | undefined;
}

/** Whether the remote may have acted on the request. `unknown` is never treated as `no`. */
export type SentVerdict = 'no' | 'unknown';

export interface UpstreamFailure {
  readonly code: ErrorCode;
  readonly sent: SentVerdict;
  /** For the log; untrusted parts have passed JSON.stringify. */
  readonly detail: string;
  /** HTTP status when there was one. */
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** Location header of a 3xx, for the log and the status page. */
  readonly location?: string;
}

/** Receives one answer; after `onJson`, `onStreamEnd` or `onFailure` nothing more is called. */
export interface AnswerSink {
  /** Status and headers of the answer, before anything else; for exchanges that need one of them. */
  onHeaders?(status: number, headers: IncomingHttpHeaders): void;
  /** A whole application/json body, at most maxResponseBytes; the status may be 4xx with a JSON-RPC error. */
  onJson(status: number, body: Buffer): void;
  /** The answer is an event stream; messages follow. */
  onStreamStart(): void;
  /** The data of one SSE event, whole, at most maxResponseBytes. */
  onMessage(data: string): void;
  /** The stream ended; whether the final response was among the messages is the sink's to know. */
  onStreamEnd(): void;
  onFailure(failure: UpstreamFailure): void;
}

export interface OutgoingRequest {
  readonly body: Buffer | string;
  /** Flat name, value list; content-type, accept and user-agent are added by the sender. */
  readonly headers: readonly string[];
  /** From writing the request to the end of a JSON answer or the start of a stream. */
  readonly requestTimeoutMs: number;
  /** Legal silence once a stream has begun. */
  readonly streamReadTimeoutMs: number;
  readonly maxResponseBytes: number;
  /** The request holds nothing of a caller's: the log may quote what the server says to it. */
  readonly mayQuoteAnswer?: boolean;
}

export interface InFlightRequest {
  /** Closes the exchange at once; the sink hears nothing more. */
  abort(): void;
  /** The answer is complete: the sink hears nothing more, and a stream that the server does not end by itself soon is closed. */
  settle(): void;
  /** Back-pressure: stop and go on reading from the socket. */
  pause(): void;
  resume(): void;
}

/** A legacy session with a server. The id is a secret: never logged, only fingerprinted. */
export interface UpstreamSession {
  readonly id: string | undefined;
  readonly side: Side;
  /** Extra headers of every request in this session (session id, protocol version). */
  readonly headers: readonly string[];
  /** DELETE when the server gave an id and `terminateOnClose` is set; best effort, bounded. */
  close(): Promise<void>;
}

export interface RemoteTool {
  readonly name: string;
  /** The tool as the server sent it, unknown fields included. */
  readonly definition: Readonly<Record<string, unknown>>;
  /** From `x-mcp-header`: where each Mcp-Param header takes its value. */
  readonly paramHeaders: readonly ParamHeader[];
}

export interface ParamHeader {
  /** `Mcp-Param-Region`. */
  readonly header: string;
  /** Chain of property names from the root of the arguments. */
  readonly path: readonly string[];
}

export interface ToolListing {
  readonly tools: readonly RemoteTool[];
  readonly rejected: readonly { readonly name: string; readonly reason: string }[];
  readonly ttlMs: number | undefined;
  readonly cacheScope: 'private' | 'public';
}
