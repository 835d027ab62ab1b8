// Where the parts of a request body lie that a proxy may have to replace, and the replacing itself.
// Bytes outside the edits stay as they are. A key that two parsers could read differently at these
// levels (twice, or in another case, which Go's parser takes for the same) is refused: what was
// checked here must be what the remote server executes.

import { FairleadError } from '#core/errors.ts';

import { readMembers, valueStartOf } from './json-members.ts';
import type { JsonMember, NestedMembers } from './json-members.ts';

export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface Edit extends Span {
  readonly text: string;
}

/** Offsets are bytes of the body. Spans cover values, quotes included. */
export interface RequestSpans {
  readonly id: Span | undefined;
  readonly method: Span | undefined;
  readonly params: Span | undefined;
  readonly name: Span | undefined;
  /** The value of `params._meta`. */
  readonly meta: Span | undefined;
  /** Undefined when `_meta` is absent or no object. */
  readonly metaMembers: readonly JsonMember[] | undefined;
  /** The body as latin1: one character per byte. */
  readonly text: string;
}

export const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
export const CLIENT_INFO_KEY = 'io.modelcontextprotocol/clientInfo';
export const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
export const LOG_LEVEL_KEY = 'io.modelcontextprotocol/logLevel';
export const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo';
/** What a modern request says about itself in `_meta`. */
export const ENVELOPE_KEYS: ReadonlySet<string> = new Set([
  VERSION_KEY,
  CLIENT_INFO_KEY,
  CAPABILITIES_KEY,
  LOG_LEVEL_KEY,
]);

const MESSAGE_KEYS = watchList(['jsonrpc', 'id', 'method', 'params']);
const PARAMS_KEYS = watchList(['name', 'arguments', '_meta']);
const META_KEYS = watchList([...ENVELOPE_KEYS, 'progressToken']);

interface WatchList {
  readonly keys: readonly string[];
  readonly folded: ReadonlySet<string>;
}

function watchList(keys: readonly string[]): WatchList {
  return { keys, folded: new Set(keys.map(fold)) };
}

/** As Go's encoding/json folds names: by case, with U+017F for s and U+212A for k. */
function fold(key: string): string {
  return key.toLowerCase().toUpperCase();
}

/**
 * Locates the parts of a body that has passed JSON.parse; throws INVALID_REQUEST on an ambiguous
 * one. `latin1`: the body as latin1, when it has been read so already.
 */
export function locateRequest(body: Buffer, latin1?: string): RequestSpans {
  const text = latin1 ?? body.toString('latin1');
  try {
    return locate(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new FairleadError('INVALID_REQUEST', {
      logDetail: 'the body could not be scanned',
      cause: error,
    });
  }
}

function locate(text: string): RequestSpans {
  const inMeta: NestedMembers = { key: '_meta', nested: undefined, members: undefined };
  const inParams: NestedMembers = { key: 'params', nested: inMeta, members: undefined };
  const members = readMembers(text, valueStartOf(text), inParams);
  const params = inParams.members ?? NO_MEMBERS;
  refuseAmbiguous(members, MESSAGE_KEYS);
  refuseAmbiguous(params, PARAMS_KEYS);
  if (inMeta.members !== undefined) refuseAmbiguous(inMeta.members, META_KEYS);
  return {
    id: valueOf(members, 'id'),
    method: valueOf(members, 'method'),
    params: valueOf(members, 'params'),
    name: valueOf(params, 'name'),
    meta: valueOf(params, '_meta'),
    metaMembers: inMeta.members,
    text,
  };
}

const NO_MEMBERS: readonly JsonMember[] = [];

export function memberOf(members: readonly JsonMember[], key: string): JsonMember | undefined {
  for (const member of members) if (member.key === key) return member;
  return undefined;
}

function valueOf(members: readonly JsonMember[], key: string): Span | undefined {
  const member = memberOf(members, key);
  return member === undefined ? undefined : { start: member.valueStart, end: member.end };
}

function refuseAmbiguous(members: readonly JsonMember[], { keys, folded }: WatchList): void {
  let seen = 0;
  for (const { key } of members) {
    const index = keys.indexOf(key);
    if (index === -1) {
      if (folded.has(fold(asText(key)))) throw ambiguous(key);
    } else if ((seen & (1 << index)) !== 0) {
      throw ambiguous(key);
    } else {
      seen |= 1 << index;
    }
  }
}

/** A key of the latin1 view as text; escapes may have put other characters in it already. */
function asText(key: string): string {
  for (let index = 0; index < key.length; index++) {
    const code = key.charCodeAt(index);
    if (code > 0xff) return key;
    if (code > 0x7f) return Buffer.from(key, 'latin1').toString('utf8');
  }
  return key;
}

function ambiguous(key: string): FairleadError {
  return new FairleadError('INVALID_REQUEST', {
    publicDetail: `The key ${JSON.stringify(key.slice(0, 64))} appears twice or in another case.`,
  });
}

/** The body with the edits made; they are in order and do not overlap. */
export function splice(body: Buffer, edits: readonly Edit[]): Buffer {
  let length = body.length;
  for (const edit of edits) length += Buffer.byteLength(edit.text) - (edit.end - edit.start);
  const result = Buffer.allocUnsafe(length);
  let from = 0;
  let to = 0;
  for (const edit of edits) {
    to += body.copy(result, to, from, edit.start);
    to += result.write(edit.text, to);
    from = edit.end;
  }
  body.copy(result, to, from);
  return result;
}

/** As `splice`, for text and offsets of text. */
export function spliceText(text: string, edits: readonly Edit[]): string {
  let result = '';
  let from = 0;
  for (const edit of edits) {
    result += text.slice(from, edit.start) + edit.text;
    from = edit.end;
  }
  return result + text.slice(from);
}
