// How an exchange is answered, once: JSON, an event stream, a result, or an error in the form that
// the error table and the agent's era want. A later answer to the same exchange does nothing, and
// neither does an answer to an agent that has gone. The first answer also finishes the call record.

import { FairleadError } from '#core/errors.ts';
import type { ErrorCode } from '#core/errors.ts';
import { VERSION } from '#core/version.ts';

import type { ResultClass } from '#sidecar/audit/call-record.ts';
import { AnswerStream } from './answer-stream.ts';
import type { AgentExchange, RequestId } from './exchange.ts';

export const SERVER_INFO = { name: 'fairlead', version: VERSION } as const;
export const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo';
/** `_meta` key of our own tool errors: a client can tell them from the remote server's. */
export const ERROR_META_KEY = 'fairlead.dev/error';

/** False when the exchange has been answered, cancelled or left by the agent. */
export function isAnswerable(exchange: AgentExchange): boolean {
  const { response } = exchange;
  return !response.headersSent && !response.destroyed && !response.writableEnded;
}

/** Text of an answer; latin1 text has one character per byte of the body that it came from. */
export interface EncodedBody {
  readonly payload: string;
  readonly encoding: 'utf8' | 'latin1';
}

/**
 * A whole JSON body. Bytes of a remote server pass through untouched: as latin1 text, one character
 * per byte, they leave in one write together with the head.
 */
export function answerJsonBytes(
  exchange: AgentExchange,
  status: number,
  body: Buffer | string | EncodedBody,
): boolean {
  if (!isAnswerable(exchange)) return false;
  const { response, record } = exchange;
  const isEncoded = typeof body === 'object' && 'payload' in body;
  const payload = isEncoded ? body.payload : body;
  const encoding = isEncoded ? body.encoding : 'utf8';
  const length = encoding === 'latin1' ? payload.length : Buffer.byteLength(payload);
  record.responseBytes = length;
  response.writeHead(status, [
    'Content-Type',
    'application/json',
    'Content-Length',
    String(length),
  ]);
  response.end(payload, encoding);
  record.finish();
  return true;
}

/** A JSON-RPC result; modern results get `resultType` and our `serverInfo` when they lack them. */
export function answerResult(
  exchange: AgentExchange,
  result: Readonly<Record<string, unknown>>,
): boolean {
  return answerMessage(exchange, 200, renderResult(exchange, result));
}

/** An error as its table entry wants it: a tool result that the model can act on, or a JSON-RPC error. */
export function answerError(exchange: AgentExchange, error: FairleadError): boolean {
  if (exchange.stream === undefined ? !isAnswerable(exchange) : !exchange.stream.isOpen)
    return false;
  const { record } = exchange;
  record.resultClass = resultClassOf(error.code);
  record.errorCode = error.code;
  record.errorDetail ??= error.logDetail;
  if (error.entry.rpc === 'tool-error' && exchange.request.method === 'tools/call') {
    return answerMessage(exchange, 200, renderResult(exchange, toolError(error, record.callId)));
  }
  return answerMessage(
    exchange,
    errorStatus(exchange, error),
    renderRpcError(exchange.request.id, error, record.callId),
  );
}

/** Turns the answer into an event stream; throws when the exchange is no longer answerable. */
export function startStream(exchange: AgentExchange): AnswerStream {
  if (exchange.stream !== undefined) return exchange.stream;
  if (!isAnswerable(exchange))
    throw new TypeError('startStream: the exchange has already been answered');
  const stream = new AnswerStream(exchange.response, exchange.record, exchange.keepAlive);
  exchange.stream = stream;
  return stream;
}

/** Ends the stream of an exchange after its final response and finishes the record. */
export function endStream(exchange: AgentExchange): void {
  exchange.stream?.end();
  exchange.record.finish();
}

function answerMessage(exchange: AgentExchange, status: number, text: string): boolean {
  if (exchange.stream === undefined) return answerJsonBytes(exchange, status, text);
  if (!exchange.stream.isOpen) return false;
  exchange.stream.send(text);
  endStream(exchange);
  return true;
}

function renderResult(exchange: AgentExchange, result: Readonly<Record<string, unknown>>): string {
  const id = JSON.stringify(exchange.request.id);
  const full = exchange.era === 'modern' ? modernResult(result) : result;
  return `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(full)}}`;
}

function modernResult(result: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const meta = typeof result._meta === 'object' ? result._meta : {};
  return { resultType: 'complete', ...result, _meta: { [SERVER_INFO_KEY]: SERVER_INFO, ...meta } };
}

/** A tools/call result with `isError`: what happened, a code, and the next step. */
export function toolError(error: FairleadError, callId: string): Record<string, unknown> {
  return {
    content: [{ type: 'text', text: `${error.code}: ${error.message}` }],
    isError: true,
    _meta: { [ERROR_META_KEY]: { code: error.code, retriable: error.entry.isRetriable, callId } },
  };
}

/** A JSON-RPC error; `data.code` shows that it is ours and not the remote server's. */
export function renderRpcError(
  id: RequestId | undefined,
  error: FairleadError,
  callId?: string,
): string {
  const { rpc, isRetriable } = error.entry;
  const data = {
    ...error.data,
    code: error.code,
    retriable: isRetriable,
    ...(callId === undefined ? {} : { callId }),
  };
  // What a table entry wants as a tool result has no place in other methods: there it is internal.
  const body = { code: typeof rpc === 'number' ? rpc : -32603, message: error.message, data };
  return JSON.stringify(
    id === undefined ? { jsonrpc: '2.0', error: body } : { jsonrpc: '2.0', id, error: body },
  );
}

/** Faults of the content, which 2025 clients expect inside a 200; everything else keeps its status. */
const LEGACY_CONTENT_FAULTS: ReadonlySet<ErrorCode> = new Set([
  'METHOD_NOT_FOUND',
  'INVALID_PARAMS',
  'UNKNOWN_TOOL',
  'MISSING_CLIENT_CAPABILITY',
  'INTERNAL_ERROR',
]);

export function errorStatus(
  exchange: { readonly era: AgentExchange['era'] },
  error: FairleadError,
): number {
  if (exchange.era === 'legacy' && LEGACY_CONTENT_FAULTS.has(error.code)) return 200;
  return error.entry.httpStatus;
}

const RESULT_CLASSES: Partial<Record<ErrorCode, ResultClass>> = {
  SERVER_BUSY: 'busy',
  SERVER_UNAVAILABLE: 'unavailable',
  SERVER_REMOVED: 'unavailable',
  UPSTREAM_UNAUTHORIZED: 'unavailable',
  UPSTREAM_REFUSED: 'unavailable',
  UPSTREAM_REDIRECTED: 'unavailable',
  UPSTREAM_VERSION_UNSUPPORTED: 'unavailable',
  SESSION_LOST: 'unavailable',
  OUTCOME_UNKNOWN: 'unknown',
  CALL_TIMED_OUT: 'timeout',
  UPSTREAM_PROTOCOL_ERROR: 'protocol_error',
  RESPONSE_TOO_LARGE: 'protocol_error',
  INTERNAL_ERROR: 'internal_error',
};

/** The metric label and log field of an error; what is not listed was refused by us. */
export function resultClassOf(code: ErrorCode): ResultClass {
  return RESULT_CLASSES[code] ?? 'refused';
}

/**
 * Anything thrown, as the error that its reader may see. The message of a foreign error may quote
 * what it choked on (JSON.parse quotes its input), so only its name and its stack frames are kept.
 */
export function asFairleadError(thrown: unknown): FairleadError {
  if (thrown instanceof FairleadError) return thrown;
  const logDetail =
    thrown instanceof Error ? [thrown.name, ...stackFrames(thrown)].join(' ') : typeof thrown;
  return new FairleadError('INTERNAL_ERROR', { logDetail, cause: thrown });
}

function stackFrames(error: Error): string[] {
  const lines = (error.stack ?? '').split('\n').map((line) => line.trim());
  return lines.filter((line) => /^at .*:\d+:\d+\)?$/.test(line)).slice(0, 6);
}
