// How one request gets to the API server and back: rate limit, credentials, write gate, deadline, retries,
// errors as KubeError. It knows HTTP and nothing about kinds.
// A request is repeated only when the server said that it did not act (429, 503), when no byte had left,
// or when it only reads; a write that may have been acted on is never sent twice.

import type { Dispatcher } from 'undici';
import type { Clock } from '#core/clock.ts';
import { CallDeadline } from './call-deadline.ts';
import type { BeforeSend, KubeConnection, ReadyConnection } from './kube-connection.ts';
import { KubeError, errorFromAnswer } from './kube-error.ts';
import type { RequestLimiter } from './request-limiter.ts';
import { LeaseLostError } from './write-gate.ts';
import type { WriteGate } from './write-gate.ts';

/** Counts `rest_client_requests_total`; `code` is the HTTP status, or `<error>` without an answer. */
export interface KubeClientMetrics {
  request(labels: { readonly code: string; readonly method: string; readonly host: string }): void;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** For the whole call: waiting for the rate limit, retries and reading the answer. Default 30 s. */
  readonly timeoutMs?: number;
  /** Default 3. */
  readonly maxRetries?: number;
}

export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly options?: CallOptions;
  /** Asked before every attempt to write, at the moment before the first byte. */
  readonly gate: WriteGate;
  /** Skips the rate limit's queue. Lease calls only. */
  readonly isUrgent?: boolean;
}

export interface KubeTransportOptions {
  readonly connection: KubeConnection;
  readonly limiter: RequestLimiter;
  readonly clock: Clock;
  readonly userAgent: string;
  readonly random: () => number;
  readonly metrics?: KubeClientMetrics | undefined;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRIES = 3;

export class KubeTransport {
  readonly #options: KubeTransportOptions;

  constructor(options: KubeTransportOptions) {
    this.#options = options;
  }

  /** Sends, reads the whole JSON answer, retries as the policy allows. */
  async requestJson(request: KubeRequest): Promise<unknown> {
    using deadline = this.#deadline(request);
    return await this.#withRetries(request, deadline, async (response) => response.body.json());
  }

  /** Sends and returns the body as it arrives. The timeout covers only the time up to the headers. */
  async *requestStream(request: KubeRequest): AsyncGenerator<Uint8Array> {
    using deadline = this.#deadline(request);
    const body = await this.#withRetries(request, deadline, async (response) => response.body);
    deadline.disarm();
    try {
      for await (const chunk of body) yield toBytes(chunk);
    } catch (error) {
      throw failure(error, { request, deadline, wasStarted: true });
    } finally {
      body.destroy();
    }
  }

  #deadline(request: KubeRequest): CallDeadline {
    const timeoutMs = request.options?.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    return new CallDeadline({
      clock: this.#options.clock,
      timeoutMs,
      signal: request.options?.signal,
    });
  }

  async #withRetries<T>(
    request: KubeRequest,
    deadline: CallDeadline,
    read: (response: Dispatcher.ResponseData) => Promise<T>,
  ): Promise<T> {
    const maxRetries = request.options?.maxRetries ?? DEFAULT_RETRIES;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#attempt(request, deadline, read);
      } catch (error) {
        const delayMs =
          attempt < maxRetries
            ? retryDelayMs(error, {
                attempt,
                isRead: request.method === 'GET',
                random: this.#options.random,
              })
            : undefined;
        if (delayMs === undefined) throw error;
        // When the time runs out in the pause, the server's own error says more than "timeout".
        const hasWaited = await this.#options.clock.sleep(delayMs, deadline.signal).then(
          () => true,
          () => false,
        );
        if (!hasWaited)
          throw request.options?.signal?.aborted === true ? request.options.signal.reason : error;
      }
    }
  }

  async #attempt<T>(
    request: KubeRequest,
    deadline: CallDeadline,
    read: (response: Dispatcher.ResponseData) => Promise<T>,
  ): Promise<T> {
    let wasStarted = false;
    const beforeSend = (): void => {
      if (request.method !== 'GET') request.gate.assertMayWrite();
      wasStarted = true;
    };
    try {
      const response = await this.#authorizedSend(request, deadline.signal, beforeSend);
      if (response.statusCode >= 200 && response.statusCode < 300) return await read(response);
      throw await answerError(request, response);
    } catch (error) {
      throw failure(error, { request, deadline, wasStarted });
    }
  }

  /** One send, and a second one when a 401 may mean that the token was rotated. */
  async #authorizedSend(
    request: KubeRequest,
    signal: AbortSignal,
    beforeSend: () => void,
  ): Promise<Dispatcher.ResponseData> {
    const connection = await this.#options.connection.acquire();
    const response = await this.#send(request, connection, { signal, beforeSend });
    if (response.statusCode !== 401) return response;
    const isRenewed = await this.#options.connection.renew(connection.generation).then(
      () => true,
      () => false,
    );
    if (!isRenewed) return response;
    await response.body.dump();
    return this.#send(request, await this.#options.connection.acquire(), { signal, beforeSend });
  }

  async #send(
    request: KubeRequest,
    connection: ReadyConnection,
    call: { signal: AbortSignal; beforeSend: () => void },
  ): Promise<Dispatcher.ResponseData> {
    if (request.isUrgent === true) this.#options.limiter.passInFront();
    else await this.#options.limiter.pass(call.signal);
    const labels = { method: request.method, host: connection.serverUrl.host };
    const options: Dispatcher.RequestOptions & BeforeSend = {
      origin: connection.serverUrl.origin,
      path:
        connection.serverUrl.pathname.replace(/\/$/, '') +
        request.path +
        renderQuery(request.query),
      method: request.method,
      headers: this.#headers(request, connection),
      body: request.body === undefined ? null : JSON.stringify(request.body),
      ...call,
    };
    try {
      const response = await connection.dispatcher.request(options);
      this.#options.metrics?.request({ ...labels, code: String(response.statusCode) });
      return response;
    } catch (error) {
      this.#options.metrics?.request({ ...labels, code: '<error>' });
      throw error;
    }
  }

  #headers(request: KubeRequest, connection: ReadyConnection): Record<string, string> {
    return {
      ...connection.headers,
      'user-agent': this.#options.userAgent,
      accept: request.accept ?? 'application/json',
      ...(request.body === undefined
        ? {}
        : { 'content-type': request.contentType ?? 'application/json' }),
    };
  }
}

interface RetryInput {
  readonly attempt: number;
  readonly isRead: boolean;
  readonly random: () => number;
}

/** Pure: how long to wait before the same request may be sent again; undefined when it must not be. */
export function retryDelayMs(error: unknown, input: RetryInput): number | undefined {
  if (!(error instanceof KubeError)) return undefined;
  const backoffMs = 500 * 2 ** input.attempt * (1 + input.random());
  if (error.kind === 'too-many-requests' || error.status === 503)
    return error.retryAfterMs ?? backoffMs;
  if (error.kind !== 'unreachable') return undefined;
  if (error.outcome === 'not-sent') return backoffMs;
  // A kept-alive connection that the server closed at the same moment: reading again is safe, once.
  return input.isRead && input.attempt === 0 ? 0 : undefined;
}

async function answerError(
  request: KubeRequest,
  response: Dispatcher.ResponseData,
): Promise<KubeError> {
  const text = await response.body.text().catch(() => '');
  const header = response.headers['retry-after'];
  return errorFromAnswer({
    httpStatus: response.statusCode,
    retryAfterHeader: typeof header === 'string' ? header : undefined,
    body: parseOrUndefined(text),
    request: nameOf(request),
  });
}

interface FailureContext {
  readonly request: KubeRequest;
  readonly deadline: CallDeadline;
  readonly wasStarted: boolean;
}

/** Pure: any thrown value as the error that callers see. */
function failure(error: unknown, context: FailureContext): unknown {
  if (error instanceof KubeError || error instanceof LeaseLostError) return error;
  const outcome = context.wasStarted ? 'unknown' : 'not-sent';
  if (context.deadline.isTimedOut) {
    return new KubeError('timeout', {
      message: `${nameOf(context.request)}: no answer in time`,
      outcome,
      cause: error,
    });
  }
  const caller = context.request.options?.signal;
  if (caller?.aborted === true) return caller.reason;
  const reason = error instanceof Error ? error.message : String(error);
  return new KubeError('unreachable', {
    message: `${nameOf(context.request)}: ${reason}`,
    outcome,
    cause: error,
  });
}

function nameOf(request: KubeRequest): string {
  return `${request.method} ${request.path}`;
}

function renderQuery(query: KubeRequest['query']): string {
  const given = Object.entries(query ?? {}).filter(
    (pair): pair is [string, string] => pair[1] !== undefined,
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function toBytes(chunk: unknown): Uint8Array {
  return chunk instanceof Uint8Array ? chunk : Buffer.from(String(chunk));
}
