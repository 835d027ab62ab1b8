// What an answer with another status than 200 means, body and headers taken together, and how a
// failure is told to the caller. Pure. Texts of the server are quoted, cut short, and go to the
// log only, and of calls not even there: a server's error may repeat the arguments.

import type { IncomingHttpHeaders } from 'node:http';

import type { ErrorCode } from '#core/errors.ts';

import { classifyStatus, contentKind, parseRetryAfter, readRpcError } from './classify-status.ts';
import type { RpcErrorFacts } from './classify-status.ts';
import { quoteServer, sessionOf } from './quote-server.ts';
import type { SentVerdict, UpstreamFailure } from './upstream-types.ts';

const MAX_TEXT_BYTES = 1024;
const MAX_LOCATION_CHARACTERS = 512;

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Undefined when it did not arrive whole or was too long. */
  readonly body: Buffer | undefined;
  readonly requestHeaders: readonly string[];
  /** The request held nothing of a caller's, so that the answer can repeat nothing of it either. */
  readonly mayQuote: boolean;
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
  const { status, headers, body, requestHeaders, mayQuote } = answer;
  const kind = contentKind(headers['content-type']);
  const rpcError = kind === 'json' && body !== undefined ? parseRpcError(body) : undefined;
  const text = kind === 'other' ? body?.toString('utf8', 0, MAX_TEXT_BYTES) : undefined;
  const verdict = classifyStatus({
    status,
    rpcError,
    text,
    hadSession: sessionOf(requestHeaders) !== undefined,
  });
  if (verdict.kind === 'failure') {
    const quote =
      mayQuote && rpcError !== undefined
        ? quoteServer(rpcError.message, requestHeaders)
        : undefined;
    return { ...verdict, detail: describe(status, rpcError?.code, quote) };
  }
  return { kind: 'answer', body: body ?? Buffer.alloc(0) };
}

function parseRpcError(body: Buffer): RpcErrorFacts | undefined {
  try {
    return readRpcError(JSON.parse(body.toString('utf8')));
  } catch {
    return undefined;
  }
}

function describe(status: number, code: number | undefined, quote: string | undefined): string {
  if (code === undefined) return `HTTP ${status}`;
  return `HTTP ${status}, JSON-RPC error ${code}${quote === undefined ? '' : `: ${quote}`}`;
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
  const retryAfterMs = parseRetryAfter(onlyValue(headers['retry-after']), nowMs);
  const location =
    code === 'UPSTREAM_REDIRECTED'
      ? withoutQuery(onlyValue(headers.location))?.slice(0, MAX_LOCATION_CHARACTERS)
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

/** A header that a server repeats is a list, whatever Node's types say; one that contradicts itself says nothing. */
function onlyValue(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Queries hold tokens and arguments; where the redirect leads is seen without them (R104). */
function withoutQuery(location: string | undefined): string | undefined {
  return location?.replace(/[?#].*$/s, '');
}
