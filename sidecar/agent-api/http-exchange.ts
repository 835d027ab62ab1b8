// One accepted JSON-RPC request of an agent and the HTTP response that will answer it. Watches
// the response's socket: an agent that goes away before the answer ended cancels the exchange,
// once; a cancelled exchange is closed and never answered.

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';

import type { ProtocolVersion } from '#core/config/sidecar-config.ts';

import type { FinishableRecord, RecordOwner } from '#sidecar/audit/call-record.ts';
import type { AgentSession } from './agent-session.ts';
import type { AnswerStream } from './answer-stream.ts';
import { startStream } from './answers.ts';
import type { AgentExchange, Era, JsonRpcRequest, Principal } from './exchange.ts';
import type { CancellableRequest } from './in-flight-requests.ts';
import type { StreamKeepAlive } from './stream-keep-alive.ts';

export interface HttpExchangeOptions {
  readonly request: JsonRpcRequest;
  readonly body: Buffer;
  readonly latin1Body: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly response: ServerResponse;
  readonly era: Era;
  readonly protocolVersion: ProtocolVersion;
  readonly alias: string | undefined;
  readonly principal: Principal;
  readonly session: AgentSession | undefined;
  readonly record: FinishableRecord;
  readonly keepAlive: StreamKeepAlive;
  /** A listener threw; the exchange goes on. */
  readonly onListenerFailed: (thrown: unknown) => void;
}

export class HttpExchange implements AgentExchange, CancellableRequest, RecordOwner {
  readonly request: JsonRpcRequest;
  readonly body: Buffer;
  readonly latin1Body: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly response: ServerResponse;
  readonly era: Era;
  readonly protocolVersion: ProtocolVersion;
  readonly alias: string | undefined;
  readonly principal: Principal;
  readonly session: AgentSession | undefined;
  readonly record: FinishableRecord;
  readonly keepAlive: StreamKeepAlive;
  stream: AnswerStream | undefined = undefined;
  readonly #onListenerFailed: (thrown: unknown) => void;
  #cancelListeners: (() => void)[] | undefined;
  #isCancelled = false;

  constructor(options: HttpExchangeOptions) {
    this.request = options.request;
    this.body = options.body;
    this.latin1Body = options.latin1Body;
    this.headers = options.headers;
    this.response = options.response;
    this.era = options.era;
    this.protocolVersion = options.protocolVersion;
    this.alias = options.alias;
    this.principal = options.principal;
    this.session = options.session;
    this.record = options.record;
    this.keepAlive = options.keepAlive;
    this.#onListenerFailed = options.onListenerFailed;
  }

  handleFinished(): void {
    this.session?.inFlight.delete(this);
  }

  onCancelled(listener: () => void): void {
    if (this.#isCancelled) listener();
    else (this.#cancelListeners ??= []).push(listener);
  }

  /** The socket closed; after a whole answer that is nothing new. */
  handleClosed(): void {
    if (!this.record.isFinished) this.#cancel();
  }

  /** notifications/cancelled: tells the relay, and ends the response without an answer (2025-11-25, Cancellation). */
  cancelByAgent(): void {
    if (this.record.isFinished) return;
    this.#cancel();
    // The client no longer waits for this id; an event stream without events is the answer that no client misreads.
    if (this.stream === undefined && !this.response.headersSent) startStream(this);
    this.stream?.end();
  }

  /** The drain's deadline: the exchange has its last answer, the relay lets go. */
  interrupt(): void {
    this.#runListeners();
  }

  #cancel(): void {
    // The relay may know better (a write that was sent is unknown) and overwrite the class.
    this.record.resultClass = 'cancelled';
    this.#runListeners();
    this.record.finish();
  }

  #runListeners(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    for (const listener of this.#cancelListeners ?? []) {
      try {
        listener();
      } catch (thrown) {
        this.#onListenerFailed(thrown);
      }
    }
  }
}
