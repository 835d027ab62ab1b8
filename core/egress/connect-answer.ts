// The two heads of a CONNECT (RFC 9110 section 9.3.6): what a proxy is asked, and what its answer
// means. Strict: what is not plainly an HTTP/1 answer opens nothing. Three verdicts: 200 opens the
// tunnel, 4xx is the proxy's own policy (smokescreen says 407 where Squid says 403), and everything
// else, 5xx included, says nothing about what is allowed. Pure.

import { USER_AGENT } from '#core/version.ts';
import type { FailureReason } from './egress-policy.ts';
import { parseFields } from './response-fields.ts';

export interface TunnelTarget {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

export type ConnectAnswer =
  | { readonly kind: 'incomplete' }
  /** What comes after the head is the target's. */
  | { readonly kind: 'open'; readonly headBytes: number }
  | { readonly kind: 'denied'; readonly status: number }
  | {
      readonly kind: 'failed';
      readonly reason: Extract<FailureReason, 'proxy-error' | 'proxy-answer'>;
      readonly status?: number;
    };

/** Status line and fields. */
const MAX_HEAD_BYTES = 16_384;
const BLANK_LINE = Buffer.from('\r\n\r\n');
const LF = 0x0a;
const CR = 0x0d;
/** HTTP/1.0, too: it is what goproxy, and so smokescreen, opens a tunnel with. */
const STATUS_LINE = /^HTTP\/1\.[01] ([1-9][0-9]{2})(?: [^\r]*)?(?:\r\n|$)/;
const BEGINNING = 'HTTP/1.';
const BAD_CHARACTER = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/;
/** Too slow, too early, too many: true of the moment, and no policy. */
const PASSING_4XX: ReadonlySet<number> = new Set([408, 425, 429]);

/** No credentials, no Origin, nothing of the request that is to come. */
export function renderConnect({ host, port }: TunnelTarget): string {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${String(port)}`;
  return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\nUser-Agent: ${USER_AGENT}\r\n\r\n`;
}

/** Reads all that a proxy has sent so far. */
export function readConnectAnswer(bytes: Buffer): ConnectAnswer {
  const end = bytes.indexOf(BLANK_LINE);
  if (end === -1) return mayStillBeHead(bytes) ? { kind: 'incomplete' } : notHttp();
  if (end > MAX_HEAD_BYTES) return notHttp();
  const text = bytes.toString('latin1', 0, end);
  const line = BAD_CHARACTER.test(text) ? null : STATUS_LINE.exec(text);
  const headers = line === null ? undefined : parseFields(text, line[0].length);
  if (line === null || headers === undefined) return notHttp();
  const status = Number(line[1]);
  if (status !== 200) return refusal(status);
  // Chunks around a tunnel (RFC 9110 forbids them) would be taken for bytes of the target. A length
  // is to be ignored.
  if (headers['transfer-encoding'] !== undefined) return notHttp(status);
  return { kind: 'open', headBytes: end + BLANK_LINE.length };
}

function refusal(status: number): ConnectAnswer {
  if (status >= 400 && status < 500 && !PASSING_4XX.has(status)) return { kind: 'denied', status };
  return status >= 400 ? { kind: 'failed', reason: 'proxy-error', status } : notHttp(status);
}

function notHttp(status?: number): ConnectAnswer {
  const failure = { kind: 'failed', reason: 'proxy-answer' } as const;
  return status === undefined ? failure : { ...failure, status };
}

/** False as soon as more bytes could not make it an answer. */
function mayStillBeHead(bytes: Buffer): boolean {
  if (bytes.length >= MAX_HEAD_BYTES + BLANK_LINE.length) return false;
  const beginning = bytes.toString('latin1', 0, BEGINNING.length);
  if (!BEGINNING.startsWith(beginning)) return false;
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at - 1] !== CR) return false;
  }
  return true;
}
