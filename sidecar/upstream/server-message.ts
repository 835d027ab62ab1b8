// What one message of a server's answer is, read from its outermost members only: the content, big
// as it may be, is skipped and not parsed. Pure; whether an answer is right for its request is the
// caller's to know.

import { isObjectAt, readMembers, valueStartOf } from './json-members.ts';
import type { JsonMember } from './json-members.ts';
import { memberOf } from './splice-json.ts';

export type ServerMessageKind = 'result' | 'error' | 'notification' | 'request' | 'invalid';

export interface ServerMessage {
  readonly kind: ServerMessageKind;
  readonly text: string;
  readonly members: readonly JsonMember[];
}

/** Offsets of the members are positions in `text`. */
export function readServerMessage(text: string): ServerMessage {
  try {
    const start = valueStartOf(text);
    if (!isObjectAt(text, start)) return { kind: 'invalid', text, members: [] };
    const members = readMembers(text, start);
    return { kind: kindOf(members), text, members };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { kind: 'invalid', text, members: [] };
  }
}

function kindOf(members: readonly JsonMember[]): ServerMessageKind {
  let [hasMethod, hasId, hasResult, hasError] = [false, false, false, false];
  for (const { key } of members) {
    if (key === 'result') hasResult = true;
    else if (key === 'id') hasId = true;
    else if (key === 'method') hasMethod = true;
    else if (key === 'error') hasError = true;
  }
  if (hasMethod) return hasId ? 'request' : 'notification';
  if (hasResult === hasError) return 'invalid';
  return hasResult ? 'result' : 'error';
}

/** The member's value as JSON text; undefined when it is absent. */
export function rawMember(
  text: string,
  members: readonly JsonMember[],
  key: string,
): string | undefined {
  const member = memberOf(members, key);
  return member === undefined ? undefined : text.slice(member.valueStart, member.end);
}

/** The member's value when it is a string. */
export function stringMember(
  text: string,
  members: readonly JsonMember[],
  key: string,
): string | undefined {
  const raw = rawMember(text, members, key);
  if (raw === undefined || !raw.startsWith('"')) return undefined;
  try {
    return JSON.parse(raw) as string;
  } catch {
    return undefined;
  }
}
