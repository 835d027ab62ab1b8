// Builds the outgoing tools/call of one call by splicing the agent's own bytes: what need not
// change, the arguments above all, stays byte for byte. Mirrored headers are made from what is
// sent, never taken from the agent. Four legs: the agent's era and the server's are each legacy
// or modern (MCP 2025-11-25, 2026-07-28). Pure.

import type { IncomingHttpHeaders } from 'node:http';

import type { ServerLimits } from '#core/config/limits-schema.ts';
import { FairleadError } from '#core/errors.ts';
import { CLIENT_INFO } from '#core/version.ts';

import { encodeHeaderValue } from './encode-header-value.ts';
import { appendParamHeaders } from './param-headers.ts';
import {
  CAPABILITIES_KEY,
  CLIENT_INFO_KEY,
  ENVELOPE_KEYS,
  VERSION_KEY,
  locateRequest,
  memberOf,
  splice,
} from './splice-json.ts';
import type { Edit, RequestSpans, Span } from './splice-json.ts';
import { appendTraceContext } from './trace-context.ts';
import type { OutgoingRequest, RemoteTool, Side, UpstreamSession } from './upstream-types.ts';

/** The call as the agent sent it. */
export interface CallSource {
  readonly era: Side['era'];
  readonly body: Buffer;
  /** The body as latin1, when it has been read so already. */
  readonly latin1Body?: string | undefined;
  /** `params.arguments`, parsed. */
  readonly arguments: unknown;
  readonly headers: IncomingHttpHeaders;
}

/** Where it goes. */
export interface CallRoute {
  readonly tool: Pick<RemoteTool, 'name' | 'paramHeaders'>;
  readonly side: Side;
  readonly session: UpstreamSession | undefined;
  readonly limits: ServerLimits;
  /**
   * Our own id, in place of the agent's id and progress token: needed wherever several agents
   * share a session, since ids are unique within one.
   */
  readonly upstreamId: string | undefined;
}

export interface CallRequest {
  readonly outgoing: OutgoingRequest;
  /** What has to be put back into the answers; undefined when the agent's own were sent. */
  readonly replaced: ReplacedIds | undefined;
}

/** As the agent wrote them: JSON text. */
export interface ReplacedIds {
  readonly id: string;
  readonly progressToken: string | undefined;
}

const CLIENT_INFO_TEXT = JSON.stringify(CLIENT_INFO);

/** Throws INVALID_REQUEST when the body can be read in two ways. */
export function buildCallRequest(source: CallSource, route: CallRoute): CallRequest {
  const spans = locateRequest(source.body, source.latin1Body);
  if (spans.id === undefined || spans.name === undefined || spans.params === undefined) {
    throw new FairleadError('INVALID_REQUEST', {
      logDetail: 'tools/call without id or params.name',
    });
  }
  const edits: Edit[] = [];
  const name = JSON.stringify(route.tool.name);
  const { start, end } = spans.name;
  if (spans.text.slice(start, end) !== name) edits.push({ start, end, text: name });
  if (route.upstreamId !== undefined)
    edits.push({ ...spans.id, text: JSON.stringify(route.upstreamId) });
  editMeta(edits, source, { side: route.side, upstreamId: route.upstreamId, spans });
  const { limits } = route;
  return {
    outgoing: {
      body: withEdits(source.body, edits),
      headers: headersOf(source, route),
      requestTimeoutMs: limits.requestTimeoutMs,
      streamReadTimeoutMs: limits.streamReadTimeoutMs,
      maxResponseBytes: limits.maxResponseBytes,
    },
    replaced:
      route.upstreamId === undefined ? undefined : replacedIds(source.body, spans.id, spans),
  };
}

function withEdits(body: Buffer, edits: Edit[]): Buffer {
  if (edits.length === 0) return body;
  return splice(body, edits.length === 1 ? edits : edits.sort(byStart));
}

function byStart(a: Edit, b: Edit): number {
  return a.start - b.start;
}

function replacedIds(body: Buffer, id: Span, spans: RequestSpans): ReplacedIds {
  const token =
    spans.metaMembers === undefined ? undefined : memberOf(spans.metaMembers, 'progressToken');
  return {
    id: body.toString('utf8', id.start, id.end),
    progressToken:
      token === undefined ? undefined : body.toString('utf8', token.valueStart, token.end),
  };
}

function headersOf(source: CallSource, route: CallRoute): readonly string[] {
  const { side, session, tool } = route;
  const headers: string[] = [];
  if (side.era === 'modern') {
    headers.push(
      'mcp-protocol-version',
      side.protocolVersion,
      'mcp-method',
      'tools/call',
      'mcp-name',
      encodeHeaderValue(tool.name),
    );
    if (tool.paramHeaders.length > 0)
      appendParamHeaders(headers, tool.paramHeaders, source.arguments);
  } else if (session === undefined) {
    headers.push('mcp-protocol-version', side.protocolVersion);
  } else if (source.headers.traceparent === undefined) {
    return session.headers;
  } else {
    headers.push(...session.headers);
  }
  appendTraceContext(headers, source.headers);
  return headers;
}

interface MetaPlan {
  readonly side: Side;
  readonly upstreamId: string | undefined;
  readonly spans: RequestSpans;
}

function editMeta(edits: Edit[], source: CallSource, plan: MetaPlan): void {
  const isModern = plan.side.era === 'modern';
  if (source.era !== plan.side.era || (isModern && plan.spans.metaMembers === undefined))
    rewriteMeta(edits, source.body, plan);
  else if (isModern) amendEnvelope(edits, plan);
  else replaceToken(edits, plan);
}

/** Modern to modern: who asks is us, what they can do is the agent's to say. */
function amendEnvelope(edits: Edit[], plan: MetaPlan): void {
  const { meta, metaMembers, text } = plan.spans;
  if (meta === undefined || metaMembers === undefined) return;
  const clientInfo = memberOf(metaMembers, CLIENT_INFO_KEY);
  if (clientInfo === undefined) {
    const comma = metaMembers.length === 0 ? '' : ',';
    edits.push({
      start: meta.start + 1,
      end: meta.start + 1,
      text: `"${CLIENT_INFO_KEY}":${CLIENT_INFO_TEXT}${comma}`,
    });
  } else {
    edits.push({ start: clientInfo.valueStart, end: clientInfo.end, text: CLIENT_INFO_TEXT });
  }
  const version = memberOf(metaMembers, VERSION_KEY);
  const wanted = JSON.stringify(plan.side.protocolVersion);
  if (version !== undefined && text.slice(version.valueStart, version.end) !== wanted)
    edits.push({ start: version.valueStart, end: version.end, text: wanted });
  replaceToken(edits, plan);
}

function replaceToken(edits: Edit[], { upstreamId, spans: { metaMembers } }: MetaPlan): void {
  if (upstreamId === undefined || metaMembers === undefined) return;
  const token = memberOf(metaMembers, 'progressToken');
  if (token !== undefined)
    edits.push({ start: token.valueStart, end: token.end, text: JSON.stringify(upstreamId) });
}

/** Between the eras: the envelope comes or goes, the other members keep their bytes. */
function rewriteMeta(edits: Edit[], body: Buffer, { side, upstreamId, spans }: MetaPlan): void {
  const members = side.era === 'modern' ? [envelopeText(side)] : [];
  for (const member of spans.metaMembers ?? []) {
    if (ENVELOPE_KEYS.has(member.key)) continue;
    const isToken = member.key === 'progressToken' && upstreamId !== undefined;
    members.push(
      isToken
        ? `"progressToken":${JSON.stringify(upstreamId)}`
        : body.toString('utf8', member.start, member.end),
    );
  }
  const text = `{${members.join(',')}}`;
  const { meta, params } = spans;
  if (meta !== undefined) edits.push({ ...meta, text });
  else if (side.era === 'modern' && params !== undefined)
    edits.push({ start: params.start + 1, end: params.start + 1, text: `"_meta":${text},` });
}

/** A legacy agent's capabilities were declared to us, and the bridge relays none of them. */
function envelopeText({ protocolVersion }: Side): string {
  return `"${VERSION_KEY}":${JSON.stringify(protocolVersion)},"${CLIENT_INFO_KEY}":${CLIENT_INFO_TEXT},"${CAPABILITIES_KEY}":{}`;
}
