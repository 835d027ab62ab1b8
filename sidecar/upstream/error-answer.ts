// What an answer with another status than 200 means, body and headers taken together, and how a
// failure is told to the caller. Pure. Texts of the server are quoted, cut short, and go to the
// log only.

import type { IncomingHttpHeaders } from 'node:http';

import type { ErrorCode } from '#core/errors.ts';

import { classifyStatus, contentKind, parseRetryAfter, readRpcError } from './classify-status.ts';
import type { RpcErrorFacts } from './classify-status.ts';
import type { SentVerdict, UpstreamFailure } from './upstream-types.ts';

const MAX_TEXT_BYTES = 1024;
const MAX_MESSAGE_CHARACTERS = 256;
const MAX_LOCATION_CHARACTERS = 512;

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Undefined when it did not arrive whole or was too long. */
  readonly body: Buffer | undefined;
  readonly requestHeaders: readonly string[];
}

export type ErrorJudgement =
  /** The body is a JSON-RPC error that answers the request. */
  | { readonly kind: 'answer'; readonly body: Buffer }
  | {
      readonly kind: 'failure';
      readonly code: ErrorCode;
      readonly sent: SentVerdict;
      readonly detail: string;
    };

export function judgeErrorAnswer(answer: ErrorAnswer): ErrorJudgement {
  const { status, headers, body, requestHeaders } = answer;
  const kind = contentKind(headers['content-type']);
  const rpcError = kind === 'json' && body !== undefined ? parseRpcError(body) : undefined;
  const text = kind === 'other' ? body?.toString('utf8', 0, MAX_TEXT_BYTES) : undefined;
  const verdict = classifyStatus({
    status,
    rpcError,
    text,
    hadSession: hasSession(requestHeaders),
  });
  if (verdict.kind === 'failure') return { ...verdict, detail: describe(status, rpcError) };
  return { kind: 'answer', body: body ?? Buffer.alloc(0) };
}

function parseRpcError(body: Buffer): RpcErrorFacts | undefined {
  try {
    return readRpcError(JSON.parse(body.toString('utf8')));
  } catch {
    return undefined;
  }
}

function hasSession(headers: readonly string[]): boolean {
  for (let index = 0; index < headers.length; index += 2)
    if (headers[index] === 'mcp-session-id') return true;
  return false;
}

function describe(status: number, rpcError: RpcErrorFacts | undefined): string {
  if (rpcError === undefined) return `HTTP ${status}`;
  const message = JSON.stringify(rpcError.message.slice(0, MAX_MESSAGE_CHARACTERS));
  return `HTTP ${status}, JSON-RPC error ${rpcError.code}: ${message}`;
}

export interface FailureFacts extends Pick<UpstreamFailure, 'code' | 'sent' | 'detail'> {
  /** Of the answer, if one had begun. */
  readonly answer: { readonly status: number; readonly headers: IncomingHttpHeaders } | undefined;
  readonly nowMs: number;
}

export function describeFailure({
  code,
  sent,
  detail,
  answer,
  nowMs,
}: FailureFacts): UpstreamFailure {
  if (answer === undefined) return { code, sent, detail };
  const { status, headers } = answer;
  const retryAfterMs = parseRetryAfter(headers['retry-after'], nowMs);
  const location =
    code === 'UPSTREAM_REDIRECTED'
      ? headers.location?.slice(0, MAX_LOCATION_CHARACTERS)
      : undefined;
  return {
    code,
    sent,
    detail: location === undefined ? detail : `${detail} to ${JSON.stringify(location)}`,
    status,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(location === undefined ? {} : { location }),
  };
}
