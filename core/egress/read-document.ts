// One JSON document of a server, such as OAuth metadata, read so that it means one thing only: the
// right media type, valid UTF-8, one object, no name twice in an object, nested within bounds. Pure.
// RFC 9728 section 3.2, RFC 8414 section 3.2, RFC 8259 sections 4 and 8.1.

import type { IncomingHttpHeaders } from 'node:http';

export type DocumentFault =
  | 'content-type'
  | 'not-utf-8'
  | 'not-json'
  | 'not-an-object'
  | 'duplicate-name'
  | 'reserved-name'
  | 'nested-too-deep';

export type JsonObject = Readonly<Record<string, unknown>>;

export type DocumentReading =
  | { readonly kind: 'document'; readonly value: JsonObject }
  | { readonly kind: 'refused'; readonly reason: DocumentFault };

const MAX_DEPTH = 32;
const MEDIA_TYPE = /^application\/json[ \t]*(;|$)/i;
const CHARSET = /;[ \t]*charset[ \t]*=[ \t]*"?([^";]*)/i;

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function readJsonDocument(answer: {
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
}): DocumentReading {
  if (!isJson(answer.headers['content-type'])) return refused('content-type');
  let text: string;
  try {
    text = utf8.decode(answer.body);
  } catch {
    return refused('not-utf-8');
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refused('not-json');
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    return refused('not-an-object');
  const fault = scanNames(text);
  return fault === undefined ? { kind: 'document', value: value as JsonObject } : refused(fault);
}

function isJson(contentType: unknown): boolean {
  if (typeof contentType !== 'string' || !MEDIA_TYPE.test(contentType)) return false;
  const charset = CHARSET.exec(contentType)?.[1]?.trim().toLowerCase();
  return charset === undefined || charset === 'utf-8';
}

/**
 * `JSON.parse` keeps the last of two equal names where others keep the first, so that what was
 * judged and what is used could differ. `text` is valid JSON.
 */
function scanNames(text: string): DocumentFault | undefined {
  const open: OpenValue[] = [];
  let at = 0;
  while (at < text.length) {
    const char = text.charAt(at);
    const end = char === '"' ? stringEnd(text, at) : at + 1;
    const fault =
      char === '"' ? noteString(open.at(-1), text.slice(at, end)) : noteMark(open, char);
    if (fault !== undefined) return fault;
    at = end;
  }
  return undefined;
}

function noteString(inside: OpenValue | undefined, literal: string): DocumentFault | undefined {
  if (inside?.names === undefined || !inside.isNameNext) return undefined;
  inside.isNameNext = false;
  const name = JSON.parse(literal) as string;
  // Reading such a member from an object that lacks it gives what all objects have.
  if (name === '__proto__') return 'reserved-name';
  if (inside.names.has(name)) return 'duplicate-name';
  inside.names.add(name);
  return undefined;
}

function noteMark(open: OpenValue[], char: string): DocumentFault | undefined {
  const inside = open.at(-1);
  if (char === '{' || char === '[') {
    if (open.length === MAX_DEPTH) return 'nested-too-deep';
    open.push({ names: char === '{' ? new Set() : undefined, isNameNext: true });
  } else if (char === '}' || char === ']') {
    open.pop();
  } else if (char === ',' && inside !== undefined) {
    inside.isNameNext = true;
  }
  return undefined;
}

interface OpenValue {
  /** Undefined for an array. */
  readonly names: Set<string> | undefined;
  isNameNext: boolean;
}

/** Past the closing quote of the string that begins at `start`. */
function stringEnd(text: string, start: number): number {
  let at = start + 1;
  while (text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1;
  return at + 1;
}

function refused(reason: DocumentFault): DocumentReading {
  return { kind: 'refused', reason };
}
