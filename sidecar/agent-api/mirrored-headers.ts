// The headers that a modern POST mirrors from its body, checked against it (MCP 2026-07-28,
// Streamable HTTP, "Request Metadata" and "Server Validation"): whoever routed or judged by the
// header must have seen what we execute. Pure; says nothing about versions or methods themselves.

import { FairleadError } from '#core/errors.ts';

export interface MirroredHeaders {
  readonly protocolVersion: string | undefined;
  readonly method: string | undefined;
  readonly name: string | undefined;
}

/** Methods whose `Mcp-Name` mirrors a parameter. */
const NAME_SOURCES: Readonly<Record<string, 'name' | 'uri' | 'taskId'>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

const SENTINEL_PREFIX = '=?base64?';
const SENTINEL_SUFFIX = '?=';

export interface MirroredBody {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Undefined when every required header is there and equal to the body. */
export function checkMirroredHeaders(
  headers: MirroredHeaders,
  body: MirroredBody,
): FairleadError | undefined {
  if (headers.protocolVersion === undefined) return mismatch('MCP-Protocol-Version is missing.');
  if (headers.method === undefined) return mismatch('Mcp-Method is missing.');
  if (headers.method !== body.method) return mismatch('Mcp-Method differs from the body.');
  const source = Object.hasOwn(NAME_SOURCES, body.method) ? NAME_SOURCES[body.method] : undefined;
  if (source === undefined) return undefined;
  const expected = body.params[source];
  // A call without a name is a fault of its parameters, which the method's own check reports.
  if (typeof expected !== 'string') return undefined;
  if (headers.name === undefined) return mismatch('Mcp-Name is missing.');
  const name = decodeHeaderValue(headers.name);
  if (name === undefined) return mismatch('Mcp-Name is not valid Base64 of UTF-8 text.');
  return name === expected ? undefined : mismatch('Mcp-Name differs from the body.');
}

export function mismatch(publicDetail: string): FairleadError {
  return new FairleadError('HEADER_MISMATCH', { publicDetail });
}

/** Undoes the Base64 sentinel form; undefined when the payload is not canonical Base64 of UTF-8. */
export function decodeHeaderValue(value: string): string | undefined {
  if (!value.startsWith(SENTINEL_PREFIX) || !value.endsWith(SENTINEL_SUFFIX)) return value;
  const payload = value.slice(SENTINEL_PREFIX.length, -SENTINEL_SUFFIX.length);
  const bytes = Buffer.from(payload, 'base64');
  // Buffer skips what it does not know; only a payload that comes back unchanged was valid.
  if (bytes.toString('base64') !== payload) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
