// Requests of our own to a server: negotiation, handshake, lists. They carry ids of our own, read
// JSON and event streams alike, and end at one absolute deadline, whatever trickles in. They have
// no effects on the server's side, so a lost answer is an unavailable server, not an open question.

import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

import type { TimerHandle } from '#core/clock.ts';
import { FairleadError } from '#core/errors.ts';
import type { ErrorCode } from '#core/errors.ts';

import { readRpcError } from './classify-status.ts';
import { sendRequest } from './send-request.ts';
import type {
  AnswerSink,
  InFlightRequest,
  UpstreamFailure,
  UpstreamTarget,
} from './upstream-types.ts';

export type Members = Readonly<Record<string, unknown>>;

export interface ControlRequest {
  readonly method: string;
  readonly params?: Members;
  readonly headers: readonly string[];
  readonly timeoutMs: number;
  /** A request that the server sends on this answer's stream (legacy). */
  readonly onServerRequest?: (message: Members) => void;
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data: unknown;
}

export type ControlAnswer =
  | {
      readonly kind: 'result';
      readonly result: Members;
      readonly sessionId: string | undefined;
      /** Length of the answer's text. */
      readonly characters: number;
    }
  | { readonly kind: 'error'; readonly error: RpcError; readonly status: number };

/** Rejects with a FairleadError when there is no JSON-RPC answer. */
export function sendControlRequest(
  target: UpstreamTarget,
  request: ControlRequest,
): Promise<ControlAnswer> {
  return new Promise((resolve, reject) =>
    new ControlExchange(target, request, { resolve, reject }).start(),
  );
}

/** How much later the exchange's own timers fire than the absolute one. */
const BACKSTOP_MS = 1_000;

interface Outcome {
  resolve(answer: ControlAnswer): void;
  reject(error: FairleadError): void;
}

class ControlExchange implements AnswerSink {
  readonly #target: UpstreamTarget;
  readonly #request: ControlRequest;
  readonly #outcome: Outcome;
  readonly #id = randomUUID();
  #inFlight: InFlightRequest | undefined;
  #timer: TimerHandle | undefined;
  #status = 0;
  #sessionId: string | undefined;

  constructor(target: UpstreamTarget, request: ControlRequest, outcome: Outcome) {
    this.#target = target;
    this.#request = request;
    this.#outcome = outcome;
  }

  start(): void {
    const { method, params, headers, timeoutMs } = this.#request;
    const body = JSON.stringify({ jsonrpc: '2.0', id: this.#id, method, params });
    const { maxResponseBytes } = this.#target.server.limits;
    this.#timer = this.#target.clock.setTimer(timeoutMs, () => this.#timeOut());
    // The absolute timer is the first to fire; the exchange's own ones are only its backstop.
    const backstopMs = timeoutMs + BACKSTOP_MS;
    const outgoing = {
      body,
      headers,
      requestTimeoutMs: backstopMs,
      streamReadTimeoutMs: backstopMs,
      maxResponseBytes,
      mayQuoteAnswer: true,
    };
    this.#inFlight = sendRequest(this.#target, outgoing, this);
  }

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    const sessionId = headers['mcp-session-id'];
    this.#status = status;
    this.#sessionId = typeof sessionId === 'string' ? sessionId : undefined;
  }

  onJson(_status: number, body: Buffer): void {
    const text = body.toString('utf8');
    const message = parseMessage(text);
    if (message === undefined || !this.#isAnswer(message))
      this.#reject('UPSTREAM_PROTOCOL_ERROR', 'the JSON body is no JSON-RPC answer');
    else this.#answer(message, text.length);
  }

  onStreamStart(): void {}

  onMessage(data: string): void {
    const message = parseMessage(data);
    if (message === undefined) return;
    if (typeof message['method'] === 'string') {
      if (message['id'] !== undefined) this.#request.onServerRequest?.(message);
    } else if (this.#isAnswer(message)) {
      this.#answer(message, data.length);
      this.#inFlight?.settle();
    }
  }

  onStreamEnd(): void {
    this.#reject('SERVER_UNAVAILABLE', 'the stream ended without an answer');
  }

  onFailure(failure: UpstreamFailure): void {
    this.#timer?.cancel();
    this.#outcome.reject(controlError(failure));
  }

  /** An error may lack the id: the server could not read it, or refused before it did. */
  #isAnswer(message: Members): boolean {
    const { id } = message;
    return id === this.#id || ((id === null || id === undefined) && message['error'] !== undefined);
  }

  #answer(message: Members, characters: number): void {
    this.#timer?.cancel();
    const error = readRpcError(message);
    const result = message['result'];
    if (error !== undefined) {
      const { data } = message['error'] as Members;
      this.#outcome.resolve({ kind: 'error', error: { ...error, data }, status: this.#status });
    } else if (isObject(result)) {
      this.#outcome.resolve({ kind: 'result', result, sessionId: this.#sessionId, characters });
    } else {
      this.#reject(
        'UPSTREAM_PROTOCOL_ERROR',
        'the answer has neither a result object nor an error',
      );
    }
  }

  #timeOut(): void {
    this.#inFlight?.abort();
    this.#reject('SERVER_UNAVAILABLE', `${this.#request.method} was not answered in time`);
  }

  #reject(code: ErrorCode, logDetail: string): void {
    this.#timer?.cancel();
    this.#outcome.reject(new FairleadError(code, { logDetail }));
  }
}

/** Nothing was changed on the server, so "unknown" is simply "unavailable". */
export function controlError(failure: UpstreamFailure): FairleadError {
  const isLost = failure.code === 'OUTCOME_UNKNOWN' || failure.code === 'CALL_TIMED_OUT';
  return new FairleadError(isLost ? 'SERVER_UNAVAILABLE' : failure.code, {
    logDetail: failure.detail,
  });
}

function parseMessage(text: string): Members | undefined {
  try {
    const message: unknown = JSON.parse(text);
    return isObject(message) ? message : undefined;
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
