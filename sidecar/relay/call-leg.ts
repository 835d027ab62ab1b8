// One call between an agent of one era and a server of the same or the other: what is sent, and
// how each message of the answer reads for the agent. Same-era messages pass as they are; only
// their outermost members are looked at.

import type { ErrorCode } from '#core/errors.ts';
import type { AgentExchange } from '#sidecar/agent-api/exchange.ts';
import type { ResultClass } from '#sidecar/audit/call-record.ts';
import type { CatalogTool } from '#sidecar/catalog/catalog-snapshot.ts';
import { answerServerRequest, cancelLegacy } from '#sidecar/upstream/answer-server-request.ts';
import { type BridgeContext, bridgeMessage } from '#sidecar/upstream/bridge-answers.ts';
import { wrapsOutput } from '#sidecar/upstream/bridge-tools.ts';
import { buildCallRequest } from '#sidecar/upstream/call-request.ts';
import { isObjectAt, readMembers } from '#sidecar/upstream/json-members.ts';
import {
  rawMember,
  readServerMessage,
  type ServerMessage,
  stringMember,
} from '#sidecar/upstream/server-message.ts';
import { LOG_LEVEL_KEY, memberOf } from '#sidecar/upstream/splice-json.ts';
import type {
  OutgoingRequest,
  Side,
  UpstreamSession,
  UpstreamTarget,
} from '#sidecar/upstream/upstream-types.ts';

export interface CallLegOptions {
  readonly exchange: AgentExchange;
  readonly tool: CatalogTool;
  readonly target: UpstreamTarget;
  readonly side: Side;
  readonly session: UpstreamSession | undefined;
  /** An id of our own, where several agents share the session. */
  readonly upstreamId: string | undefined;
}

export interface FinalResponse {
  readonly kind: 'response';
  /** What the agent gets. */
  readonly payload: string;
  /** latin1: one character per byte of a body that passes as it is. */
  readonly encoding: 'utf8' | 'latin1';
  readonly resultClass: ResultClass;
  readonly rpcErrorCode: number | undefined;
  /** Present when the server asks for input (MRTR). */
  readonly inputRequired: { readonly requestState: unknown } | undefined;
}

export type LegMessage =
  | FinalResponse
  | { readonly kind: 'notification'; readonly text: string }
  /** Nothing for the agent: dropped, or answered by us. */
  | { readonly kind: 'handled' }
  | { readonly kind: 'fault'; readonly code: ErrorCode; readonly detail: string };

export class CallLeg {
  readonly outgoing: OutgoingRequest;
  readonly #options: CallLegOptions;
  readonly #context: BridgeContext;

  constructor(options: CallLegOptions) {
    const { exchange, tool, target, side, session, upstreamId } = options;
    this.#options = options;
    const call = buildCallRequest(
      {
        era: exchange.era,
        body: exchange.body,
        latin1Body: exchange.latin1Body,
        arguments: exchange.request.params?.['arguments'],
        headers: exchange.headers,
      },
      { tool: tool.remote, side, session, limits: target.server.limits, upstreamId },
    );
    this.outgoing = call.outgoing;
    this.#context = {
      serverEra: side.era,
      agentEra: exchange.era,
      replaced: call.replaced,
      logLevel: metaOf(exchange)?.[LOG_LEVEL_KEY],
      wrapsOutput: side.era !== exchange.era && wrapsOutput(tool.remote.definition),
      serverInfo: side.serverInfo,
      agentId: exchange.request.id,
    };
  }

  /** True when the answer's bytes need no change on the way to the agent. */
  get isPassThrough(): boolean {
    return (
      this.#context.serverEra === this.#context.agentEra && this.#context.replaced === undefined
    );
  }

  readJson(body: Buffer): LegMessage {
    if (this.isPassThrough) {
      // The outermost members of nearly all answers are ASCII and read the same in latin1, which
      // costs no decoding. What then is not plainly right is read again as what it is.
      const text = body.toString('latin1');
      const message = this.#readWhole(text);
      const isUntouched =
        message.kind === 'response' &&
        message.payload === text &&
        message.inputRequired === undefined;
      if (isUntouched) return asLatin1(message);
    }
    return this.#readWhole(body.toString('utf8'));
  }

  readMessage(data: string): LegMessage {
    return this.#read(readServerMessage(data));
  }

  /** In the legacy era a closed stream cancels nothing, so the server is told; in the modern era closing tells it. */
  cancel(): void {
    const { target, session, upstreamId, exchange } = this.#options;
    if (session !== undefined)
      void cancelLegacy(target, session, upstreamId ?? exchange.request.id);
  }

  /** A body without a stream is the response: a question of the server in it gets no answer. */
  #readWhole(text: string): LegMessage {
    const message = readServerMessage(text);
    if (message.kind !== 'request') return this.#read(message);
    return {
      kind: 'fault',
      code: 'UPSTREAM_PROTOCOL_ERROR',
      detail: 'the JSON body is no response',
    };
  }

  #read(message: ServerMessage): LegMessage {
    if (message.kind === 'result' || message.kind === 'error') {
      const fault = this.#checkId(message);
      if (fault !== undefined) return fault;
    }
    const bridged = bridgeMessage(message, this.#context);
    switch (bridged.kind) {
      case 'response':
        return this.#respond(message, bridged);
      case 'notification':
        return bridged;
      case 'dropped':
        return { kind: 'handled' };
      case 'request':
        return this.#answerServer(message.text);
      case 'fault':
        return { kind: 'fault', code: bridged.error.code, detail: bridged.error.logDetail ?? '' };
      default:
        return bridged satisfies never;
    }
  }

  #respond(
    message: ServerMessage,
    bridged: { readonly text: string; readonly errorCode: number | undefined },
  ): FinalResponse {
    const isError = bridged.errorCode !== undefined;
    return {
      kind: 'response',
      payload: bridged.text,
      encoding: 'utf8',
      resultClass: isError ? 'rpc_error' : isToolError(message) ? 'tool_error' : 'ok',
      rpcErrorCode: bridged.errorCode,
      inputRequired: isError ? undefined : inputRequired(message),
    };
  }

  /** An answer to another request is no answer; an error may lack the id that it could not read. */
  #checkId({ kind, text, members }: ServerMessage): LegMessage | undefined {
    const { upstreamId, exchange } = this.#options;
    const expected = upstreamId ?? exchange.request.id;
    const raw = rawMember(text, members, 'id');
    if (raw !== undefined && isId(raw, expected)) return undefined;
    if (kind === 'error' && (raw === undefined || raw === 'null')) return undefined;
    return { kind: 'fault', code: 'UPSTREAM_PROTOCOL_ERROR', detail: 'an answer with another id' };
  }

  #answerServer(text: string): LegMessage {
    const { target, session } = this.#options;
    if (session === undefined)
      return {
        kind: 'fault',
        code: 'UPSTREAM_PROTOCOL_ERROR',
        detail: 'a request of the server in an era that has none',
      };
    const request = parseObject(text);
    if (request === undefined)
      return {
        kind: 'fault',
        code: 'UPSTREAM_PROTOCOL_ERROR',
        detail: 'a message is not valid JSON',
      };
    void answerServerRequest(target, session, request);
    return { kind: 'handled' };
  }
}

function asLatin1({ payload, resultClass, rpcErrorCode }: FinalResponse): FinalResponse {
  return {
    kind: 'response',
    payload,
    encoding: 'latin1',
    resultClass,
    rpcErrorCode,
    inputRequired: undefined,
  };
}

function metaOf(exchange: AgentExchange): Readonly<Record<string, unknown>> | undefined {
  const meta = exchange.request.params?.['_meta'];
  return meta !== null && typeof meta === 'object'
    ? (meta as Readonly<Record<string, unknown>>)
    : undefined;
}

/** Only the outermost members had been scanned before. */
function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

function isId(raw: string, expected: string | number): boolean {
  if (raw === (typeof expected === 'number' ? String(expected) : JSON.stringify(expected)))
    return true;
  if (raw.length >= 512) return false;
  try {
    return JSON.parse(raw) === expected;
  } catch {
    return false;
  }
}

/** The text alone can't tell: the same words may stand inside the content. */
function isToolError(message: ServerMessage): boolean {
  if (!message.text.includes('"isError"')) return false;
  const { text, members } = message;
  const result = memberOf(members, 'result');
  if (result === undefined || !isObjectAt(text, result.valueStart)) return false;
  return rawMember(text, readMembers(text, result.valueStart), 'isError') === 'true';
}

function inputRequired({ text, members }: ServerMessage): FinalResponse['inputRequired'] {
  if (!text.includes('input_required')) return undefined;
  const result = memberOf(members, 'result');
  if (result === undefined || !isObjectAt(text, result.valueStart)) return undefined;
  const resultMembers = readMembers(text, result.valueStart);
  if (stringMember(text, resultMembers, 'resultType') !== 'input_required') return undefined;
  return { requestState: stringMember(text, resultMembers, 'requestState') };
}
