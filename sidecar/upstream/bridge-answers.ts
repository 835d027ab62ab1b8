// Messages of a server's answer as the agent may see them: ids and progress tokens that were
// replaced on the way out are put back, and where the eras differ the envelope is added or taken
// away, error codes are mapped, and what the agent's era cannot carry is dropped or refused.
// Values keep their bytes: nothing of the content is parsed and written again. Pure.

import { FairleadError } from '#core/errors.ts';

import type { ReplacedIds } from './call-request.ts';
import type { Members } from './control-request.ts';
import { isObjectAt, readMembers } from './json-members.ts';
import type { JsonMember } from './json-members.ts';
import { rawMember, stringMember } from './server-message.ts';
import type { ServerMessage } from './server-message.ts';
import { SERVER_INFO_KEY, memberOf, spliceText } from './splice-json.ts';
import type { Edit } from './splice-json.ts';
import type { Side } from './upstream-types.ts';

export interface BridgeContext {
  readonly serverEra: Side['era'];
  readonly agentEra: Side['era'];
  readonly replaced: ReplacedIds | undefined;
  /** For errors that come without an id, since the server could not read it. */
  readonly agentId?: string | number;
  /** Of the modern agent's request; without it no log message is for this agent. */
  readonly logLevel: unknown;
  /** See wrapsOutput in bridge-tools.ts. */
  readonly wrapsOutput: boolean;
  readonly serverInfo: Members | undefined;
}

export type BridgedMessage =
  /** `errorCode` is the server's own, before it was mapped. */
  | { readonly kind: 'response'; readonly text: string; readonly errorCode: number | undefined }
  | { readonly kind: 'notification'; readonly text: string }
  | { readonly kind: 'dropped' }
  /** A request of the server's: to be answered, never shown. */
  | { readonly kind: 'request' }
  | { readonly kind: 'fault'; readonly error: FairleadError };

export function bridgeMessage(message: ServerMessage, context: BridgeContext): BridgedMessage {
  try {
    return bridge(message, context);
  } catch (error) {
    // Only the outermost members had been scanned before.
    if (error instanceof SyntaxError) return protocolFault('a message is not valid JSON');
    throw error;
  }
}

function bridge(message: ServerMessage, context: BridgeContext): BridgedMessage {
  switch (message.kind) {
    case 'result':
      return bridgeResult(message, context);
    case 'error':
      return bridgeError(message, context);
    case 'notification':
      return bridgeNotification(message, context);
    case 'request':
      return { kind: 'request' };
    case 'invalid':
      return protocolFault('a message is no JSON-RPC message');
    default:
      return message.kind satisfies never;
  }
}

function bridgeResult(message: ServerMessage, context: BridgeContext): BridgedMessage {
  const { text, members } = message;
  const result = memberOf(members, 'result');
  if (result === undefined || !isObjectAt(text, result.valueStart))
    return protocolFault('the result is not an object');
  const edits = idEdits(message, context);
  if (context.serverEra !== context.agentEra) {
    const resultMembers = readMembers(text, result.valueStart);
    const rendered =
      context.agentEra === 'modern'
        ? modernResult(text, resultMembers, context)
        : legacyResult(text, resultMembers, context);
    if (typeof rendered !== 'string') return rendered;
    edits.push({ start: result.valueStart, end: result.end, text: rendered });
  }
  return { kind: 'response', text: applied(text, edits), errorCode: undefined };
}

/** The agent's own id, where another was sent or the server left it out. */
function idEdits({ text, members }: ServerMessage, { replaced, agentId }: BridgeContext): Edit[] {
  const id = memberOf(members, 'id');
  const isMissing = id === undefined || text.startsWith('null', id.valueStart);
  const wanted =
    replaced?.id ?? (isMissing && agentId !== undefined ? JSON.stringify(agentId) : undefined);
  if (wanted === undefined) return [];
  if (id !== undefined) return [{ start: id.valueStart, end: id.end, text: wanted }];
  const start = text.indexOf('{') + 1;
  return [{ start, end: start, text: `"id":${wanted},` }];
}

function applied(text: string, edits: Edit[]): string {
  return edits.length === 0
    ? text
    : spliceText(
        text,
        edits.sort((a, b) => a.start - b.start),
      );
}

function modernResult(
  text: string,
  members: readonly JsonMember[],
  { serverInfo }: BridgeContext,
): string {
  // A legacy server's results are complete whatever they say: that era has no other kind.
  const parts = ['"resultType":"complete"'];
  for (const member of members)
    if (member.key !== 'resultType' && member.key !== '_meta')
      parts.push(text.slice(member.start, member.end));
  const meta = memberOf(members, '_meta');
  const info =
    serverInfo === undefined ? [] : [`"${SERVER_INFO_KEY}":${JSON.stringify(serverInfo)}`];
  const kept =
    meta !== undefined && isObjectAt(text, meta.valueStart)
      ? readMembers(text, meta.valueStart)
      : [];
  const metaParts = kept
    .filter((member) => serverInfo === undefined || member.key !== SERVER_INFO_KEY)
    .map((member) => text.slice(member.start, member.end));
  if (metaParts.length + info.length > 0)
    parts.push(`"_meta":{${[...info, ...metaParts].join(',')}}`);
  return `{${parts.join(',')}}`;
}

const MODERN_ONLY: ReadonlySet<string> = new Set(['resultType', 'ttlMs', 'cacheScope']);

function legacyResult(
  text: string,
  members: readonly JsonMember[],
  context: BridgeContext,
): string | BridgedMessage {
  const resultType =
    stringMember(text, members, 'resultType') ??
    rawMember(text, members, 'resultType') ??
    'complete';
  if (resultType === 'input_required')
    return fault(
      new FairleadError('NOT_SUPPORTED_BY_SERVER', {
        logDetail: 'the server asks for input, which a legacy agent cannot be asked for',
      }),
    );
  if (resultType !== 'complete')
    return protocolFault(`the resultType ${JSON.stringify(resultType.slice(0, 64))} is unknown`);
  const kept = members.filter((member) => !MODERN_ONLY.has(member.key));
  const structured = memberOf(kept, 'structuredContent');
  const plain = (member: JsonMember): string => text.slice(member.start, member.end);
  if (structured === undefined) return `{${kept.map(plain).join(',')}}`;
  const value = text.slice(structured.valueStart, structured.end);
  const isObject = isObjectAt(text, structured.valueStart);
  if (isObject && !context.wrapsOutput) return `{${kept.map(plain).join(',')}}`;
  const render = (member: JsonMember): string => {
    if (member === structured) return `"structuredContent":{"result":${value}}`;
    if (member.key !== 'content' || isObject) return plain(member);
    return `"content":${withTextBlock(text.slice(member.valueStart, member.end), value)}`;
  };
  return `{${kept.map(render).join(',')}}`;
}

/** Clients that read content only would see nothing of a value that is no object. */
function withTextBlock(content: string, value: string): string {
  const blocks: unknown = JSON.parse(content);
  if (
    !Array.isArray(blocks) ||
    blocks.some((block: unknown) => (block as Members | null)?.['type'] === 'text')
  )
    return content;
  const block = JSON.stringify({ type: 'text', text: value });
  return blocks.length === 0
    ? `[${block}]`
    : `${content.slice(0, content.lastIndexOf(']'))},${block}]`;
}

const RESOURCE_NOT_FOUND = -32002;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;
const URL_ELICITATION_REQUIRED = -32042;
const MISSING_CAPABILITY = -32021;

function bridgeError(message: ServerMessage, context: BridgeContext): BridgedMessage {
  const { text, members } = message;
  const error = memberOf(members, 'error');
  const errorMembers =
    error !== undefined && isObjectAt(text, error.valueStart)
      ? readMembers(text, error.valueStart)
      : [];
  const code = memberOf(errorMembers, 'code');
  const errorCode = code === undefined ? Number.NaN : Number(text.slice(code.valueStart, code.end));
  if (code === undefined || !Number.isInteger(errorCode))
    return protocolFault('an error without an integer code');
  const edits = idEdits(message, context);
  if (context.serverEra !== context.agentEra) {
    if (errorCode === URL_ELICITATION_REQUIRED || errorCode === MISSING_CAPABILITY) {
      return fault(
        new FairleadError('NOT_SUPPORTED_BY_SERVER', {
          logDetail: `the server wants a client capability (JSON-RPC error ${errorCode})`,
        }),
      );
    }
    const mapped = mapCode(errorCode);
    if (mapped !== errorCode)
      edits.push({ start: code.valueStart, end: code.end, text: String(mapped) });
  }
  return { kind: 'response', text: applied(text, edits), errorCode };
}

/** -32002 became -32602; codes that MCP reserves mean nothing in the other era. */
function mapCode(code: number): number {
  if (code === RESOURCE_NOT_FOUND) return INVALID_PARAMS;
  return code <= -32020 && code >= -32099 ? INTERNAL_ERROR : code;
}

function bridgeNotification(message: ServerMessage, context: BridgeContext): BridgedMessage {
  const { text, members } = message;
  const params = memberOf(members, 'params');
  const paramsMembers =
    params !== undefined && isObjectAt(text, params.valueStart)
      ? readMembers(text, params.valueStart)
      : [];
  switch (stringMember(text, members, 'method')) {
    case 'notifications/progress':
      return restoreToken(text, paramsMembers, context);
    case 'notifications/message':
      return isLogWanted(stringMember(text, paramsMembers, 'level'), context)
        ? { kind: 'notification', text }
        : { kind: 'dropped' };
    default:
      return context.serverEra === context.agentEra
        ? { kind: 'notification', text }
        : { kind: 'dropped' };
  }
}

/** Progress for an agent that gave no token is not for this agent. */
function restoreToken(
  text: string,
  members: readonly JsonMember[],
  { replaced }: BridgeContext,
): BridgedMessage {
  if (replaced === undefined) return { kind: 'notification', text };
  const token = memberOf(members, 'progressToken');
  if (token === undefined || replaced.progressToken === undefined) return { kind: 'dropped' };
  return {
    kind: 'notification',
    text: spliceText(text, [
      { start: token.valueStart, end: token.end, text: replaced.progressToken },
    ]),
  };
}

const LOG_LEVELS: readonly unknown[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
];

function isLogWanted(
  level: string | undefined,
  { serverEra, agentEra, logLevel }: BridgeContext,
): boolean {
  if (serverEra === agentEra) return true;
  // A legacy agent set no level on a modern server; a modern one sets it with each request.
  const wanted = agentEra === 'modern' ? LOG_LEVELS.indexOf(logLevel) : -1;
  return wanted !== -1 && LOG_LEVELS.indexOf(level) >= wanted;
}

function protocolFault(logDetail: string): BridgedMessage {
  return fault(new FairleadError('UPSTREAM_PROTOCOL_ERROR', { logDetail }));
}

function fault(error: FairleadError): BridgedMessage {
  return { kind: 'fault', error };
}
