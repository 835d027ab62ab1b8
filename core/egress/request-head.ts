// The head of a request as text (RFC 9112 section 3), or the reason why there is none. A name that
// is no token, a value with a CR, LF, NUL or a character beyond latin1, and every header that has
// a say in framing or in the connection are refused before anything is written: what comes in as
// one request can't leave as two. Pure.

import type { Dispatcher } from 'undici';
import { errors } from 'undici';

import { isToken } from './response-fields.ts';

type Headers = Dispatcher.DispatchOptions['headers'];

const BAD_PATH = /[^\x21-\x7e\x80-\xff]/;
const BAD_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** Said by the client itself, or not spoken by it. */
const OWN_HEADERS: readonly string[] = [
  'host',
  'expect',
  'upgrade',
  'connection',
  'keep-alive',
  'content-length',
  'transfer-encoding',
];
/** Methods whose request has a meaning for a body: without one its length is said to be 0. */
const METHODS_WITH_BODY: readonly string[] = ['POST', 'PUT', 'PATCH', 'QUERY'];

/** Throws an InvalidArgumentError. `hostLine` is `host: …` and what else all heads have in common. */
export function renderRequestHead(
  options: Dispatcher.DispatchOptions,
  hostLine: string,
  bodyBytes: number,
): string {
  const { method, path } = options;
  if (!isToken(method)) throw invalid('the method');
  if (path.charCodeAt(0) !== SLASH || BAD_PATH.test(path)) throw invalid('the path');
  if (options.query || options.expectContinue === true) throw invalid('an option');
  const length =
    bodyBytes > 0 || METHODS_WITH_BODY.includes(method) ? `content-length: ${bodyBytes}\r\n` : '';
  return `${method} ${path} HTTP/1.1\r\n${hostLine}${renderHeaders(options.headers)}${length}\r\n`;
}

const SLASH = 0x2f;

/** undici's three forms: a flat list, something like a Map, a record. */
function renderHeaders(headers: Headers): string {
  if (headers === undefined || headers === null) return '';
  let lines = '';
  if (Array.isArray(headers)) {
    if (headers.length % 2 !== 0) throw invalid('a header');
    for (let index = 0; index < headers.length; index += 2)
      lines += renderHeader(headers[index], headers[index + 1]);
    return lines;
  }
  const pairs = Symbol.iterator in headers ? headers : Object.entries(headers);
  for (const [name, value] of pairs) lines += renderHeader(name, value);
  return lines;
}

function renderHeader(name: unknown, value: unknown): string {
  if (typeof name !== 'string' || !isToken(name) || isOwn(name)) throw invalid('a header name');
  if (value === undefined) return '';
  if (!Array.isArray(value)) return renderLine(name, value);
  return value.map((item) => renderLine(name, item)).join('');
}

function renderLine(name: string, value: unknown): string {
  if (typeof value !== 'string' || BAD_VALUE.test(value)) throw invalid('a header value');
  return `${name}: ${value}\r\n`;
}

/** Most names are told apart by their length. */
function isOwn(name: string): boolean {
  for (const own of OWN_HEADERS) {
    if (own.length === name.length && own === name.toLowerCase()) return true;
  }
  return false;
}

/** Names no value: it may be a secret. */
function invalid(what: string): Error {
  return new errors.InvalidArgumentError(`${what} of the request is not valid`);
}
