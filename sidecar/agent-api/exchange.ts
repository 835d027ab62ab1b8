// What the rest of the sidecar sees of one agent request: an HTTP exchange that must be answered
// exactly once. Answers belong to exchanges, never to client-chosen JSON-RPC ids, so two agents
// (or two requests of one agent) may use the same id at once.

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';

import type { ProtocolVersion } from '#core/config/sidecar-config.ts';
import type { TenantId, UserId } from '#core/identity/ids.ts';

import type { CallRecord } from '#sidecar/audit/call-record.ts';
import type { AgentSession } from './agent-session.ts';
import type { AnswerStream } from './answer-stream.ts';
import type { StreamKeepAlive } from './stream-keep-alive.ts';

/** modern: 2026-07-28 (stateless). legacy: 2025-11-25 and older (initialize, sessions). */
export type Era = 'modern' | 'legacy';

/** Who calls; decided by admission from configuration and verified facts, never from the body. */
export interface Principal {
  readonly tenant: TenantId;
  readonly user: UserId;
  /** Name of the agent within the pod; `default` when the binding names none. */
  readonly agent: string;
}

export type RequestId = string | number;

export interface JsonRpcRequest {
  readonly jsonrpc: '2.0';
  readonly id: RequestId;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface AgentExchange {
  readonly request: JsonRpcRequest;
  /** The body's bytes exactly as the agent sent them. */
  readonly body: Buffer;
  /** The body with one character per byte, when it has been read that way. */
  readonly latin1Body: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly response: ServerResponse;
  readonly era: Era;
  readonly protocolVersion: ProtocolVersion;
  /** The alias of `/servers/{alias}/mcp`, where tools have bare names; undefined for `/mcp`. */
  readonly alias: string | undefined;
  readonly principal: Principal;
  /** Present for legacy requests after initialize. */
  readonly session: AgentSession | undefined;
  readonly record: CallRecord;
  /** The listener's keeper of silent streams. */
  readonly keepAlive: StreamKeepAlive;
  /** The event stream that answers this exchange; set by startStream only. */
  stream: AnswerStream | undefined;
  /** Runs once when the agent went away before the answer ended, or cancelled the request. */
  onCancelled(listener: () => void): void;
}
