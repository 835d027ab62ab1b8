// Sends one JSON-RPC request to a server and reports what comes back, over the pool's dispatch and
// without promises: JSON in one piece, streams message by message, everything else as a failure
// that says whether the server may have acted. A deadline guards each request. It follows a 307 or
// 308 within the origin, by which a server says that it did not act, and nothing else; it never
// retries, never sends an Origin, and never reads what a message means.
// MCP 2026-07-28 and 2025-11-25, Streamable HTTP, "Sending Messages".

import type { IncomingHttpHeaders } from 'node:http';

import type { TimerHandle } from '#core/clock.ts';
import { classifyUpstreamError } from '#core/egress/classify-upstream-error.ts';
import type { ErrorCode } from '#core/errors.ts';

import { BodyBuffer } from './body-buffer.ts';
import { judgeContent } from './classify-status.ts';
import type { Timed } from './deadlines.ts';
import { describeFailure, judgeErrorAnswer } from './error-answer.ts';
import { requestOptions } from './request-options.ts';
import { SseReader } from './sse-reader.ts';
import type { SseListener } from './sse-reader.ts';
import type {
  AnswerSink,
  InFlightRequest,
  OutgoingRequest,
  SentVerdict,
  UpstreamTarget,
} from './upstream-types.ts';

/** An error body beyond this explains nothing more. */
const MAX_ERROR_BODY_BYTES = 65_536;
/** Time for the server to end a stream by itself after its response, so that the socket can be used again. */
const STREAM_END_MS = 1_000;

/** What the pool gives to handlers; its other members are not used. */
interface Controller {
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

type Phase = 'waiting' | 'json' | 'stream' | 'redirect' | 'error' | 'done';

/** The sink is never called before this returns. */
export function sendRequest(
  target: UpstreamTarget,
  request: OutgoingRequest,
  sink: AnswerSink,
): InFlightRequest {
  const exchange = new UpstreamExchange(target, request, sink);
  exchange.start();
  return exchange;
}

class UpstreamExchange implements InFlightRequest, SseListener, Timed {
  slot = -1;
  deadlineMs: number;
  readonly #target: UpstreamTarget;
  readonly #request: OutgoingRequest;
  readonly #sink: AnswerSink;
  #phase: Phase = 'waiting';
  #controller: Controller | undefined;
  #isDispatching = true;
  #isPaused = false;
  #isComplete = false;
  #hangUpTimer: TimerHandle | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders | undefined;
  #body: BodyBuffer | undefined;
  #reader: SseReader | undefined;
  /** Where the request was sent to before, and is to go next; only of one that was redirected. */
  #paths: string[] | undefined;

  constructor(target: UpstreamTarget, request: OutgoingRequest, sink: AnswerSink) {
    this.#target = target;
    this.#request = request;
    this.#sink = sink;
    this.deadlineMs = target.clock.monotonicMs() + request.requestTimeoutMs;
  }

  get isGone(): boolean {
    return this.#phase === 'done';
  }

  start(): void {
    this.#target.deadlines.add(this);
    this.#dispatch(this.#target.path);
  }

  abort(): void {
    this.#end();
    this.#controller?.abort(ABORTED);
  }

  settle(): void {
    if (this.#phase === 'done') return;
    this.#end();
    const hangUp = (): void => this.#controller?.abort(ABORTED);
    this.#hangUpTimer = this.#target.clock.setTimer(STREAM_END_MS, hangUp, { unref: true });
  }

  pause(): void {
    if (this.#phase === 'done') return;
    this.#isPaused = true;
    // From here on it is the reader's silence that counts, and that is bounded too.
    this.#noteLife();
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
    else this.#phase = status < 400 && this.#isRedirected() ? 'redirect' : 'error';
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
      case 'redirect':
      case 'error':
        this.#collect(chunk, MAX_ERROR_BODY_BYTES);
        return;
      default:
    }
  }

  onResponseEnd(): void {
    this.#isComplete = true;
    switch (this.#phase) {
      case 'stream':
        this.#end();
        this.#sink.onStreamEnd();
        return;
      case 'json':
        this.#endJson();
        return;
      case 'redirect':
        this.#sendAgain();
        return;
      case 'error':
        this.#endError();
        return;
      default:
        this.#hangUpTimer?.cancel();
    }
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    if (this.#phase === 'done') {
      this.#hangUpTimer?.cancel();
      // The pool catches what a sink throws and reports it here; silence would hide a bug.
      if (error !== ABORTED)
        this.#target.log.error({ err: error }, 'an answer could not be handled');
      return;
    }
    if (this.#isDispatching) {
      queueMicrotask(() => this.onResponseError(null, error));
      return;
    }
    if (this.#phase === 'error' || this.#phase === 'redirect') {
      this.#endError();
      return;
    }
    const { kind, code, reason } = classifyUpstreamError(error, this.#controller !== undefined);
    this.#fail(code, kind === 'not-sent' ? 'no' : 'unknown', reason);
  }

  onEvent(data: string): void {
    this.#sink.onMessage(data);
  }

  onTooLarge(): void {
    this.#fail(
      'RESPONSE_TOO_LARGE',
      'unknown',
      `one event is over ${this.#request.maxResponseBytes} bytes`,
    );
  }

  #dispatch(path: string): void {
    const { body, headers } = this.#request;
    const options = requestOptions(path, { method: 'POST', headers, body });
    this.#isDispatching = true;
    this.#target.pool.dispatch(options, this);
    this.#isDispatching = false;
  }

  #isRedirected(): boolean {
    const paths = this.#paths ?? [this.#target.path];
    const answer = { status: this.#status, headers: this.#headers ?? {}, paths };
    const path = this.#target.pool.redirectedPath(answer);
    if (path !== undefined) this.#paths = [...paths, path];
    return path !== undefined;
  }

  /** As if it had not been sent before: the server has said that it did not act. */
  #sendAgain(): void {
    this.#phase = 'waiting';
    this.#controller = undefined;
    this.#isComplete = false;
    this.#body = undefined;
    this.#headers = undefined;
    this.#dispatch(this.#paths?.at(-1) ?? this.#target.path);
  }

  /** Also when the sink has just aborted. */
  #hasEnded(): boolean {
    return this.#phase === 'done';
  }

  #startBody(headers: IncomingHttpHeaders): void {
    const content = judgeContent(headers);
    if (content.kind === 'fault') this.#failProtocol(content.detail);
    else if (content.kind === 'json') this.#phase = 'json';
    else this.#startStream();
  }

  #startStream(): void {
    this.#phase = 'stream';
    this.#reader = new SseReader(this, this.#request.maxResponseBytes);
    this.#noteLife();
    this.#sink.onStreamStart();
  }

  #collect(chunk: Buffer, maxBytes: number): void {
    this.#body ??= new BodyBuffer();
    if (this.#body.push(chunk, maxBytes)) return;
    if (this.#phase === 'json')
      this.#fail('RESPONSE_TOO_LARGE', 'unknown', `the answer is over ${maxBytes} bytes`);
    else this.#endError();
  }

  #endJson(): void {
    const body = this.#body;
    if (body === undefined) {
      this.#failProtocol('the JSON body is empty');
      return;
    }
    this.#end();
    this.#sink.onJson(this.#status, body.whole());
  }

  /** The status speaks also when its body does not end. */
  #endError(): void {
    const body = this.#isComplete ? (this.#body ?? new BodyBuffer()).whole() : undefined;
    const headers = this.#headers ?? {};
    const { headers: requestHeaders, mayQuoteAnswer: mayQuote = false } = this.#request;
    const facts = { status: this.#status, headers, body, requestHeaders, mayQuote };
    const answer = judgeErrorAnswer(facts);
    if (answer.kind === 'failure') {
      this.#fail(answer.code, answer.sent, answer.detail);
      return;
    }
    this.#end();
    this.#sink.onJson(this.#status, answer.body);
  }

  #failProtocol(detail: string): void {
    this.#fail('UPSTREAM_PROTOCOL_ERROR', 'unknown', detail);
  }

  #fail(code: ErrorCode, sent: SentVerdict, detail: string): void {
    const headers = this.#headers;
    const answer = headers === undefined ? undefined : { status: this.#status, headers };
    this.#end();
    // A socket with an unread rest can't be used again.
    if (!this.#isComplete) this.#controller?.abort(ABORTED);
    const nowMs = this.#target.clock.nowMs();
    this.#sink.onFailure(describeFailure({ code, sent, detail, answer, nowMs }));
  }

  /** Nothing reaches the sink after this. */
  #end(): void {
    this.#phase = 'done';
    this.#target.deadlines.remove(this);
    this.#reader?.stop();
    this.#body = undefined;
    // A socket that stays paused would hang its next request.
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#controller?.resume();
    }
  }

  #noteLife(): void {
    if (this.#phase !== 'stream') return;
    this.deadlineMs = this.#target.clock.monotonicMs() + this.#request.streamReadTimeoutMs;
    this.#target.deadlines.moved(this);
  }

  onDeadline(): void {
    if (this.#controller === undefined) {
      this.#fail('SERVER_UNAVAILABLE', 'no', 'no connection within the request timeout');
    } else if (this.#phase === 'error' || this.#phase === 'redirect') {
      this.#endError();
    } else {
      this.#fail('CALL_TIMED_OUT', 'unknown', this.#silence());
    }
  }

  #silence(): string {
    if (this.#isPaused) return 'the answer was not read';
    return this.#phase === 'stream'
      ? 'the stream fell silent'
      : 'no answer within the request timeout';
  }
}

/** Why the pool ends an exchange that this module has already ended. */
const ABORTED = new Error('the exchange was ended');
