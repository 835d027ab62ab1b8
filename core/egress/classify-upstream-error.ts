// Whether the remote may have acted on a request that ended in an error. `not-sent` only with
// proof: the connection was never opened, or the request was never started. Everything else,
// unheard-of errors included, is `unknown`; no error proves that a sent request did nothing.

import type { ErrorCode } from '#core/errors.ts';
import { CONNECT_CODES } from './connect-failure.ts';
import { EgressError } from './egress-error.ts';

export interface UpstreamErrorClass {
  readonly kind: 'not-sent' | 'unknown';
  /** For `unknown`, the relay refines the code by the tool's effect. */
  readonly code: ErrorCode;
  /** A word for logs and metrics; never an address or foreign text. */
  readonly reason: string;
}

const NOT_SENT_CODES: Readonly<Record<string, string>> = {
  ...CONNECT_CODES,
  UND_ERR_CLOSED: 'pool-closed',
};

const UNKNOWN_CODES: Readonly<
  Record<string, { readonly code: ErrorCode; readonly reason: string }>
> = {
  UND_ERR_HEADERS_TIMEOUT: { code: 'CALL_TIMED_OUT', reason: 'headers-timeout' },
  UND_ERR_BODY_TIMEOUT: { code: 'CALL_TIMED_OUT', reason: 'body-timeout' },
  UND_ERR_RES_EXCEEDED_MAX_SIZE: { code: 'RESPONSE_TOO_LARGE', reason: 'response-too-large' },
  UND_ERR_HEADERS_OVERFLOW: { code: 'UPSTREAM_PROTOCOL_ERROR', reason: 'headers-overflow' },
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: {
    code: 'UPSTREAM_PROTOCOL_ERROR',
    reason: 'content-length-mismatch',
  },
  UND_ERR_SOCKET: { code: 'OUTCOME_UNKNOWN', reason: 'socket-closed' },
  UND_ERR_ABORTED: { code: 'OUTCOME_UNKNOWN', reason: 'aborted' },
  UND_ERR_DESTROYED: { code: 'OUTCOME_UNKNOWN', reason: 'pool-destroyed' },
  ECONNRESET: { code: 'OUTCOME_UNKNOWN', reason: 'connection-reset' },
  EPIPE: { code: 'OUTCOME_UNKNOWN', reason: 'connection-reset' },
  ETIMEDOUT: { code: 'OUTCOME_UNKNOWN', reason: 'connection-timeout' },
};

const MAX_CAUSES = 5;

/**
 * Classifies an error that a handler or `request()` got. `wasStarted` is whether
 * `onRequestStart` ran: it is called before the first byte is written, so `false` is proof that
 * nothing was sent, whatever the error says.
 */
export function classifyUpstreamError(error: unknown, wasStarted = true): UpstreamErrorClass {
  const own = causeChain(error).find((link) => link instanceof EgressError);
  if (own !== undefined) return { kind: 'not-sent', code: own.code, reason: own.reason };
  const known = causeChain(error)
    .map(classifyLink)
    .find((found) => found !== undefined);
  if (wasStarted)
    return known ?? { kind: 'unknown', code: 'OUTCOME_UNKNOWN', reason: 'unrecognised-error' };
  if (known?.kind === 'not-sent') return known;
  return { kind: 'not-sent', code: 'SERVER_UNAVAILABLE', reason: known?.reason ?? 'not-started' };
}

function causeChain(error: unknown): readonly Error[] {
  const chain: Error[] = [];
  let link = error;
  while (link instanceof Error && chain.length < MAX_CAUSES) {
    chain.push(link);
    link = link.cause;
  }
  return chain;
}

function classifyLink(
  error: Error & { readonly code?: unknown; readonly syscall?: unknown },
): UpstreamErrorClass | undefined {
  if (typeof error.code !== 'string') return undefined;
  const notSent = NOT_SENT_CODES[error.code];
  if (notSent !== undefined)
    return { kind: 'not-sent', code: 'SERVER_UNAVAILABLE', reason: notSent };
  // Routing errors come from connect() or from a socket in use; only the first proves anything.
  if (error.syscall === 'connect')
    return { kind: 'not-sent', code: 'SERVER_UNAVAILABLE', reason: 'connect-failed' };
  if (error.code.startsWith('HPE_'))
    return { kind: 'unknown', code: 'UPSTREAM_PROTOCOL_ERROR', reason: 'http-parse' };
  const unknown = UNKNOWN_CODES[error.code];
  return unknown === undefined ? undefined : { kind: 'unknown', ...unknown };
}
