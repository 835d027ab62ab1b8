// Sends one JSON-RPC request to a server and reports what comes back, over undici's dispatch and
// without promises: JSON in one piece, streams message by message, everything else as a failure
// that says whether the server may have acted. One timer guards each request. It never follows a
// redirect, never retries, never sends an Origin, and never reads what a message means.
// MCP 2026-07-28 and 2025-11-25, Streamable HTTP, "Sending Messages".

import type { IncomingHttpHeaders } from 'node:http';

import type { TimerHandle } from '#core/clock.ts';
import { classifyUpstreamError } from '#core/egress/classify-upstream-error.ts';
import type { ErrorCode } from '#core/errors.ts';
import { USER_AGENT } from '#core/version.ts';

import { classifyStatus, contentKind, parseRetryAfter, readRpcError } from './classify-status.ts';
import type { RpcErrorFacts } from './classify-status.ts';
import { SseReader } from './sse-reader.ts';
import type { SseListener } from './sse-reader.ts';
import type { AnswerSink, InFlightRequest, OutgoingRequest, SentVerdict, UpstreamFailure, UpstreamTarget } from './upstream-types.ts';

// No accept-encoding: answers come as identity, so that size caps mean what they say.
const COMMON_HEADERS: readonly string[] = [
  'accept',
  'application/json, text/event-stream',
  'content-type',
  'application/json',
  'user-agent',
  USER_AGENT,
];
/** An error body beyond this explains nothing more. */
const MAX_ERROR_BODY_BYTES = 65_536;
const MAX_LOCATION_CHARACTERS = 512;

/** What undici gives to handlers; its other members are not used. */
interface Controller {
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

type Phase = 'waiting' | 'json' | 'stream' | 'error' | 'done';

/** The sink is never called before this returns. */
export function sendRequest(target: UpstreamTarget, request: OutgoingRequest, sink: AnswerSink): InFlightRequest {
  const exchange = new UpstreamExchange(target, request, sink);
  exchange.start();
  return exchange;
}

class UpstreamExchange implements InFlightRequest, SseListener {
  readonly #target: UpstreamTarget;
  readonly #request: OutgoingRequest;
  readonly #sink: AnswerSink;
  #phase: Phase = 'waiting';
  #controller: Controller | undefined;
  #isDispatching = true;
  #isPaused = false;
  #timer: TimerHandle | undefined;
  #deadlineMs: number;
  #status = 0;
  #headers: IncomingHttpHeaders | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #reader: SseReader | undefined;

  constructor(target: UpstreamTarget, request: OutgoingRequest, sink: AnswerSink) {
    this.#target = target;
    this.#request = request;
    this.#sink = sink;
    this.#deadlineMs = target.clock.monotonicMs() + request.requestTimeoutMs;
  }

  start(): void {
    const { body, headers, requestTimeoutMs } = this.#request;
    this.#arm(requestTimeoutMs);
    this.#target.pool.dispatch(
      { method: 'POST', path: this.#target.path, headers: COMMON_HEADERS.concat(headers), body, headersTimeout: 0, bodyTimeout: 0 },
      this,
    );
    this.#isDispatching = false;
  }

  abort(): void {
    this.#end();
    this.#controller?.abort(ABORTED);
  }

  pause(): void {
    if (this.#phase === 'done') return;
    this.#isPaused = true;
    this.#controller?.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    // The time of a slow reader is not the server's silence.
    this.#noteLife();
    this.#controller?.resume();
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.#phase === 'done') controller.abort(ABORTED);
  }

  onResponseStart(_controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    // 1xx answers come before the real one.
    if (this.#phase === 'done' || status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#sink.onHeaders?.(status, headers);
    if (this.#hasEnded()) return;
    if (status === 200) this.#startBody(headers);
    else this.#phase = 'error';
  }

  #startBody(headers: IncomingHttpHeaders): void {
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding !== 'identity') {
      this.#fail('UPSTREAM_PROTOCOL_ERROR', 'unknown', `content-encoding ${JSON.stringify(encoding)} was not asked for`);
      return;
    }
    const kind = contentKind(headers['content-type']);
    if (kind === 'json') this.#phase = 'json';
    else if (kind === 'stream') this.#startStream();
    else this.#fail('UPSTREAM_PROTOCOL_ERROR', 'unknown', `content-type ${JSON.stringify(headers['content-type'] ?? '')} is neither JSON nor an event stream`);
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    switch (this.#phase) {
      case 'stream':
        this.#noteLife();
        this.#reader?.push(chunk);
        return;
      case 'json':
        this.#collect(chunk, this.#request.maxResponseBytes);
        return;
      case 'error':
        this.#collect(chunk, MAX_ERROR_BODY_BYTES);
        return;
      default:
    }
  }

  onResponseEnd(): void {
    switch (this.#phase) {
      case 'stream':
        this.#end();
        this.#sink.onStreamEnd();
        return;
      case 'json':
        this.#endJson();
        return;
      case 'error':
        this.#endError();
        return;
      default:
    }
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    if (this.#phase === 'done') {
      // undici catches what a sink throws and reports it here; silence would hide a bug.
      if (error !== ABORTED) this.#target.log.error({ err: error }, 'an answer could not be handled');
      return;
    }
    if (this.#isDispatching) {
      queueMicrotask(() => this.onResponseError(null, error));
      return;
    }
    const { kind, code, reason } = classifyUpstreamError(error, this.#controller !== undefined);
    this.#fail(code, kind === 'not-sent' ? 'no' : 'unknown', reason);
  }

  onEvent(data: string): void {
    this.#sink.onMessage(data);
  }

  onTooLarge(): void {
    this.#fail('RESPONSE_TOO_LARGE', 'unknown', `one event is over ${this.#request.maxResponseBytes} bytes`);
  }

  /** Also when the sink has just aborted. */
  #hasEnded(): boolean {
    return this.#phase === 'done';
  }

  #startStream(): void {
    this.#phase = 'stream';
    this.#reader = new SseReader(this, this.#request.maxResponseBytes);
    this.#noteLife();
    this.#sink.onStreamStart();
  }

  #collect(chunk: Buffer, maxBytes: number): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= maxBytes) {
      this.#chunks.push(chunk);
    } else if (this.#phase === 'json') {
      this.#fail('RESPONSE_TOO_LARGE', 'unknown', `the answer is over ${maxBytes} bytes`);
    } else {
      this.#endError();
    }
  }

  #body(): Buffer {
    const [first] = this.#chunks;
    return first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
  }

  #endJson(): void {
    if (this.#bytes === 0) {
      this.#fail('UPSTREAM_PROTOCOL_ERROR', 'unknown', 'the JSON body is empty');
      return;
    }
    const body = this.#body();
    this.#end();
    this.#sink.onJson(this.#status, body);
  }

  #endError(): void {
    const isWhole = this.#bytes <= MAX_ERROR_BODY_BYTES;
    const body = isWhole ? this.#body() : EMPTY;
    const kind = contentKind(this.#headers?.['content-type']);
    const rpcError = kind === 'json' ? parseRpcError(body) : undefined;
    const text = kind === 'other' ? body.toString('utf8', 0, 1024) : undefined;
    const verdict = classifyStatus({ status: this.#status, rpcError, text, hadSession: hasSession(this.#request.headers) });
    if (verdict.kind === 'failure') {
      this.#fail(verdict.code, verdict.sent, describeStatus(this.#status, rpcError));
      return;
    }
    this.#end();
    this.#sink.onJson(this.#status, body);
  }

  #fail(code: ErrorCode, sent: SentVerdict, detail: string): void {
    const wasWhole = this.#phase === 'error' && this.#bytes <= MAX_ERROR_BODY_BYTES;
    const failure = this.#describe(code, sent, detail);
    this.#end();
    // A socket with an unread rest can't be used again.
    if (!wasWhole) this.#controller?.abort(ABORTED);
    this.#sink.onFailure(failure);
  }

  #describe(code: ErrorCode, sent: SentVerdict, detail: string): UpstreamFailure {
    const retryAfterMs = parseRetryAfter(this.#headers?.['retry-after'], this.#target.clock.nowMs());
    const location = code === 'UPSTREAM_REDIRECTED' ? this.#headers?.location?.slice(0, MAX_LOCATION_CHARACTERS) : undefined;
    return {
      code,
      sent,
      detail: location === undefined ? detail : `${detail} to ${JSON.stringify(location)}`,
      ...(this.#status === 0 ? {} : { status: this.#status }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(location === undefined ? {} : { location }),
    };
  }

  /** Nothing reaches the sink after this. */
  #end(): void {
    this.#phase = 'done';
    this.#timer?.cancel();
    this.#reader?.stop();
    this.#chunks = [];
    // A socket that stays paused would hang its next request.
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#controller?.resume();
    }
  }

  #noteLife(): void {
    if (this.#phase === 'stream') this.#deadlineMs = this.#target.clock.monotonicMs() + this.#request.streamReadTimeoutMs;
  }

  #arm(ms: number): void {
    this.#timer = this.#target.clock.setTimer(ms, this.#onTimer);
  }

  /** The deadline moves while the timer runs; only its firing asks how far. */
  readonly #onTimer = (): void => {
    const leftMs = this.#deadlineMs - this.#target.clock.monotonicMs();
    if (this.#isPaused) this.#arm(this.#request.streamReadTimeoutMs);
    else if (leftMs > 0) this.#arm(leftMs);
    else if (this.#controller === undefined) this.#fail('SERVER_UNAVAILABLE', 'no', 'no connection within the request timeout');
    else this.#fail('CALL_TIMED_OUT', 'unknown', this.#phase === 'stream' ? 'the stream fell silent' : 'no answer within the request timeout');
  };
}

/** Why undici ends an exchange that this module has already ended. */
const ABORTED = new Error('the exchange was ended');
const EMPTY = Buffer.alloc(0);

function parseRpcError(body: Buffer): RpcErrorFacts | undefined {
  try {
    return readRpcError(JSON.parse(body.toString('utf8')));
  } catch {
    return undefined;
  }
}

function hasSession(headers: readonly string[]): boolean {
  for (let index = 0; index < headers.length; index += 2) if (headers[index] === 'mcp-session-id') return true;
  return false;
}

function describeStatus(status: number, rpcError: RpcErrorFacts | undefined): string {
  return rpcError === undefined ? `HTTP ${status}` : `HTTP ${status}, JSON-RPC error ${rpcError.code}: ${JSON.stringify(rpcError.message.slice(0, 256))}`;
}
