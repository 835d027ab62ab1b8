// Field lines of an HTTP/1.1 message (RFC 9112 section 5, RFC 9110 section 5): text in, lower-cased
// names out, in the form that undici gives to handlers. Strict: a name is a token, nothing stands
// before the colon, no line is folded. That no line holds a control character is the caller's to
// know. Pure.

import type { IncomingHttpHeaders } from 'node:http';

/** Whether a field name, as everything that is a token, may hold a character (RFC 9110 section 5.6.2). */
const IS_TOKEN_CODE: readonly boolean[] = Array.from({ length: 256 }, (_, code) =>
  /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(String.fromCharCode(code)),
);
const SPACE = 0x20;
const TAB = 0x09;

export function isToken(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    if (IS_TOKEN_CODE[text.charCodeAt(index)] !== true) return false;
  }
  return text.length > 0;
}

/** Reads the lines of `text` from `at` on, parted by CRLF; undefined when one is not a field line. */
export function parseFields(text: string, at: number): IncomingHttpHeaders | undefined {
  const headers: IncomingHttpHeaders = {};
  let start = at;
  while (start < text.length) {
    const lineBreak = text.indexOf('\r\n', start);
    const end = lineBreak === -1 ? text.length : lineBreak;
    const colon = text.indexOf(':', start);
    if (colon === -1 || colon > end) return undefined;
    const name = text.slice(start, colon);
    if (!isToken(name)) return undefined;
    addField(headers, name.toLowerCase(), trimmed(text, colon + 1, end));
    start = end + 2;
  }
  return headers;
}

/** Without spaces and tabs at its ends; `trim` would take other characters of latin1, too. */
function trimmed(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

function addField(headers: IncomingHttpHeaders, name: string, value: string): void {
  const known = headers[name];
  if (known === undefined) {
    headers[name] = value;
  } else if (Object.hasOwn(headers, name)) {
    if (typeof known === 'string') headers[name] = [known, value];
    else known.push(value);
  } else {
    // A name that every object inherits, `__proto__` among them: an assignment could set that.
    Object.defineProperty(headers, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
}
