// What an HTTP status says about a JSON-RPC request that was sent: whether the body is the answer,
// what failed, and whether the server may have acted. Pure. A status that does not prove the
// opposite leaves the outcome unknown: gateways answer 404 and 5xx for requests that went through.

import type { IncomingHttpHeaders } from 'node:http';

import type { ErrorCode } from '#core/errors.ts';

import type { SentVerdict } from './upstream-types.ts';

export interface RpcErrorFacts {
  readonly code: number;
  readonly message: string;
}

export interface StatusFacts {
  readonly status: number;
  /** The JSON-RPC error in the body, when there is one. */
  readonly rpcError: RpcErrorFacts | undefined;
  /** The body when it is plain text. */
  readonly text: string | undefined;
  /** The request carried an Mcp-Session-Id. */
  readonly hadSession: boolean;
}

export type StatusVerdict =
  /** The body is a JSON-RPC error that answers the request. */
  | { readonly kind: 'answer' }
  | { readonly kind: 'failure'; readonly code: ErrorCode; readonly sent: SentVerdict };

/** How servers say that they do not know the session, besides 404. Only believed when one was sent. */
const SESSION_MESSAGES = [
  /server not initialized/i,
  /no valid session id/i,
  /(session|mcp-session-id)\b.{0,40}\b(not found|expired|unknown|invalid|terminated|required|does not exist)/i,
  /(invalid|unknown|expired|missing|no) (or (invalid|unknown|expired|missing) )?(mcp[- ])?session/i,
];
const SESSION_STATUSES: ReadonlySet<number> = new Set([400, 401, 404, 409, 410]);
const SESSION_CODES: ReadonlySet<number> = new Set([-32000, -32001, -32600]);
/** Refused for the form of the request, before anything could read it. */
const FORM_STATUSES: ReadonlySet<number> = new Set([405, 406, 411, 413, 414, 415, 417, 431]);
const REQUEST_TIMEOUT = 408;
const NOT_IMPLEMENTED = 501;
const METHOD_NOT_FOUND = -32601;

/** Judges any status but 200. */
export function classifyStatus(facts: StatusFacts): StatusVerdict {
  const { status, rpcError } = facts;
  if (status < 300) return failure('UPSTREAM_PROTOCOL_ERROR', 'unknown');
  if (status < 400) return failure('UPSTREAM_REDIRECTED', 'no');
  if (facts.hadSession && saysSessionIsLost(facts)) return failure('SESSION_LOST', 'unknown');
  if (status === 401 || status === 403) return failure('UPSTREAM_UNAUTHORIZED', 'no');
  if (status === 429) return failure('SERVER_BUSY', 'no');
  return rpcError === undefined ? classifyBare(status) : { kind: 'answer' };
}

/** A status of 400 or more whose body explains nothing. */
function classifyBare(status: number): StatusVerdict {
  if (FORM_STATUSES.has(status)) return failure('UPSTREAM_REFUSED', 'no');
  const isOutage = (status >= 500 && status !== NOT_IMPLEMENTED) || status === REQUEST_TIMEOUT;
  return failure(isOutage ? 'OUTCOME_UNKNOWN' : 'UPSTREAM_REFUSED', 'unknown');
}

function saysSessionIsLost({ status, rpcError, text }: StatusFacts): boolean {
  if (status === 404) return rpcError?.code !== METHOD_NOT_FOUND;
  if (
    !SESSION_STATUSES.has(status) ||
    (rpcError !== undefined && !SESSION_CODES.has(rpcError.code))
  )
    return false;
  const message = (rpcError?.message ?? text ?? '').slice(0, 256);
  return SESSION_MESSAGES.some((pattern) => pattern.test(message));
}

function failure(code: ErrorCode, sent: SentVerdict): StatusVerdict {
  return { kind: 'failure', code, sent };
}

const MAX_RETRY_AFTER_MS = 86_400_000;

/** Retry-After as seconds or as an HTTP date; undefined when it is neither. */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  const ms = /^[0-9]{1,10}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs;
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS) : undefined;
}

/** The JSON-RPC error of a parsed body; undefined when it is none. */
export function readRpcError(body: unknown): RpcErrorFacts | undefined {
  const error = isObject(body) ? body['error'] : undefined;
  if (!isObject(error) || typeof error['code'] !== 'number') return undefined;
  return {
    code: error['code'],
    message: typeof error['message'] === 'string' ? error['message'] : '',
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export type ContentKind = 'json' | 'stream' | 'other';

/** The media type of an answer, parameters and case aside. */
export function contentKind(contentType: string | readonly string[] | undefined): ContentKind {
  if (contentType === 'application/json') return 'json';
  if (contentType === 'text/event-stream') return 'stream';
  if (typeof contentType !== 'string') return 'other';
  const end = contentType.indexOf(';');
  const essence = (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
  if (essence === 'application/json') return 'json';
  return essence === 'text/event-stream' ? 'stream' : 'other';
}

export type ContentVerdict =
  | { readonly kind: 'json' | 'stream' }
  | { readonly kind: 'fault'; readonly detail: string };

const MAX_QUOTED_CHARACTERS = 64;

/** What the body of a 200 is; one that was asked for in no such form is a fault of the server. */
export function judgeContent(headers: IncomingHttpHeaders): ContentVerdict {
  const { 'content-encoding': encoding = 'identity', 'content-type': type = '' } = headers;
  if (encoding !== 'identity')
    return { kind: 'fault', detail: `content-encoding ${quoted(encoding)} was not asked for` };
  const kind = contentKind(type);
  if (kind !== 'other') return { kind };
  const detail = `content-type ${quoted(type)} is neither JSON nor an event stream`;
  return { kind: 'fault', detail };
}

/** A header that a server repeats is a list, whatever Node's types say. */
function quoted(value: string | readonly string[]): string {
  const text = typeof value === 'string' ? value : value.join(', ');
  return JSON.stringify(text.slice(0, MAX_QUOTED_CHARACTERS));
}
