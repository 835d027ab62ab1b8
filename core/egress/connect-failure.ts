// What an error on the way to an open connection means, as one word. Only for errors that come
// from connecting: the same code from a socket in use proves nothing.

import type { FailureReason } from './egress-policy.ts';

/** Codes that only a connection attempt produces. */
export const CONNECT_CODES: Readonly<Record<string, FailureReason>> = {
  UND_ERR_CONNECT_TIMEOUT: 'connect-timeout',
  ECONNREFUSED: 'connect-refused',
  ENOTFOUND: 'dns-not-found',
  EAI_AGAIN: 'dns-failed',
  EAI_FAIL: 'dns-failed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls-name',
  CERT_HAS_EXPIRED: 'tls-expired',
  CERT_NOT_YET_VALID: 'tls-expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls-untrusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls-untrusted',
  UNABLE_TO_GET_ISSUER_CERT: 'tls-untrusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls-untrusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls-untrusted',
  CERT_UNTRUSTED: 'tls-untrusted',
  CERT_REJECTED: 'tls-untrusted',
  CERT_REVOKED: 'tls-untrusted',
  CERT_SIGNATURE_FAILURE: 'tls-untrusted',
  CERT_CHAIN_TOO_LONG: 'tls-untrusted',
  INVALID_CA: 'tls-untrusted',
  INVALID_PURPOSE: 'tls-untrusted',
};

export interface ConnectFailure {
  readonly reason: FailureReason;
  /** Node's code, for the record; never foreign text. */
  readonly code: string | undefined;
  /** The address that was tried, when the error names one. */
  readonly address: string | undefined;
}

export function describeConnectError(error: unknown): ConnectFailure {
  const code = memberText(error, 'code');
  const address = memberText(error, 'address');
  if (code === undefined) return { reason: 'connect-failed', code, address };
  const reason = CONNECT_CODES[code] ?? (isTlsCode(code) ? 'tls-failed' : 'connect-failed');
  return { reason, code, address };
}

function isTlsCode(code: string): boolean {
  return code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_') || code === 'EPROTO';
}

function memberText(error: unknown, key: 'code' | 'address'): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const value: unknown = Reflect.get(error, key);
  return typeof value === 'string' ? value : undefined;
}
