// All pages of tools/list of one server, in either era. A tool that breaks a rule is left out by
// itself, with the reason; a walk that fails or goes round in circles fails as a whole, so that the
// caller keeps what it had. Nothing is cached and no schema is compiled here.

import { FairleadError } from '#core/errors.ts';

import { answerServerRequest } from './answer-server-request.ts';
import { isObject, sendControlRequest } from './control-request.ts';
import type { ControlAnswer, Members } from './control-request.ts';
import { envelope, modernHeaders } from './negotiate.ts';
import { isNestedDeeper, MAX_NESTING } from './nesting-depth.ts';
import { scanParamHeaders } from './param-headers.ts';
import { quoteServer } from './quote-server.ts';
import type {
  ParamHeader,
  RemoteTool,
  Side,
  ToolListing,
  UpstreamSession,
  UpstreamTarget,
} from './upstream-types.ts';

const METHOD_NOT_FOUND = -32601;
const MAX_PAGES = 100;
const MAX_TOOLS = 5_000;
/** The specification recommends 128; what is longer than this is refused. */
const MAX_NAME_CHARACTERS = 256;

export async function listTools(
  target: UpstreamTarget,
  side: Side,
  session: UpstreamSession | undefined,
): Promise<ToolListing> {
  const walk = new ListWalk(side, target.server.limits.maxResponseBytes);
  // One deadline for all pages: a server cannot stretch it by adding pages.
  const deadlineMs = target.clock.monotonicMs() + target.server.limits.requestTimeoutMs;
  for (;;) {
    const timeoutMs = deadlineMs - target.clock.monotonicMs();
    if (timeoutMs <= 0)
      throw new FairleadError('SERVER_UNAVAILABLE', {
        logDetail: 'tools/list did not end in time',
      });
    const answer = await sendControlRequest(target, {
      method: 'tools/list',
      ...pageRequest(side, session, walk.cursor),
      timeoutMs,
      ...(session === undefined
        ? {}
        : {
            onServerRequest: (message: Members) =>
              void answerServerRequest(target, session, message),
          }),
    });
    if (saysNoTools(answer, side)) return walk.listing();
    walk.addPage(...resultOf(answer, session));
    if (walk.cursor === undefined) return walk.listing();
  }
}

function pageRequest(
  side: Side,
  session: UpstreamSession | undefined,
  cursor: string | undefined,
): { readonly params: Members; readonly headers: readonly string[] } {
  const page = cursor === undefined ? {} : { cursor };
  return side.era === 'modern'
    ? {
        params: { ...page, _meta: envelope(side.protocolVersion) },
        headers: modernHeaders(side.protocolVersion, 'tools/list'),
      }
    : { params: page, headers: session?.headers ?? [] };
}

/** A server that announces no tools and does not know the method has none. */
function saysNoTools(answer: ControlAnswer, side: Side): boolean {
  return (
    answer.kind === 'error' &&
    answer.error.code === METHOD_NOT_FOUND &&
    side.capabilities['tools'] === undefined
  );
}

function resultOf(answer: ControlAnswer, session: UpstreamSession | undefined): [Members, number] {
  if (answer.kind === 'result') return [answer.result, answer.characters];
  const { code, message } = answer.error;
  const quote = quoteServer(message, session?.headers ?? []);
  throw new FairleadError('UPSTREAM_REFUSED', {
    logDetail: `tools/list: JSON-RPC error ${code}: ${quote}`,
  });
}

class ListWalk {
  /** Of the next page; the empty string is a cursor like any other. */
  cursor: string | undefined;
  readonly #side: Side;
  readonly #maxCharacters: number;
  readonly #tools = new Map<string, RemoteTool>();
  readonly #rejected: { name: string; reason: string }[] = [];
  readonly #cursors = new Set<string>();
  #pages = 0;
  #entries = 0;
  #characters = 0;
  #ttlMs: number | undefined;
  #isPublic = true;

  /** The pages are one answer in pieces, and together no larger than one may be. */
  constructor(side: Side, maxCharacters: number) {
    this.#side = side;
    this.#maxCharacters = maxCharacters;
  }

  addPage(result: Members, characters: number): void {
    const { tools, nextCursor } = result;
    if (!Array.isArray(tools))
      throw new FairleadError('UPSTREAM_PROTOCOL_ERROR', {
        logDetail: 'tools/list was answered without a list of tools',
      });
    this.cursor = this.#nextCursor(nextCursor);
    this.#pages += 1;
    this.#entries += tools.length;
    this.#characters += characters;
    if (this.#characters > this.#maxCharacters)
      throw new FairleadError('RESPONSE_TOO_LARGE', {
        logDetail: `the pages of tools/list are over ${this.#maxCharacters} bytes`,
      });
    if (this.#entries > MAX_TOOLS) throw tooMuch(`more than ${MAX_TOOLS} tools`);
    if (this.cursor !== undefined && this.#pages === MAX_PAGES)
      throw tooMuch(`more than ${MAX_PAGES} pages`);
    for (const tool of tools) this.#addTool(tool);
    this.#noteCaching(result);
  }

  listing(): ToolListing {
    return {
      tools: [...this.#tools.values()],
      rejected: this.#rejected,
      ttlMs: this.#ttlMs,
      cacheScope: this.#isPublic && this.#pages > 0 ? 'public' : 'private',
    };
  }

  #nextCursor(cursor: unknown): string | undefined {
    if (cursor === undefined || cursor === null) return undefined;
    if (typeof cursor !== 'string')
      throw new FairleadError('UPSTREAM_PROTOCOL_ERROR', {
        logDetail: 'nextCursor is not a string',
      });
    if (this.#cursors.has(cursor)) throw tooMuch('the same cursor twice');
    this.#cursors.add(cursor);
    return cursor;
  }

  #addTool(tool: unknown): void {
    const verdict = readTool(tool, this.#side);
    if (verdict.kind === 'rejected')
      this.#rejected.push({ name: verdict.name, reason: verdict.reason });
    else if (this.#tools.has(verdict.tool.name))
      this.#rejected.push({
        name: verdict.tool.name,
        reason: 'the server lists this name twice; the first one is used',
      });
    else this.#tools.set(verdict.tool.name, verdict.tool);
  }

  /** The strictest page decides; what is absent is private. */
  #noteCaching({ ttlMs, cacheScope }: Members): void {
    if (cacheScope !== 'public') this.#isPublic = false;
    if (typeof ttlMs !== 'number' || !(ttlMs >= 0)) return;
    this.#ttlMs = Math.min(ttlMs, this.#ttlMs ?? ttlMs);
  }
}

function tooMuch(what: string): FairleadError {
  return new FairleadError('UPSTREAM_PROTOCOL_ERROR', {
    logDetail: `tools/list does not end: ${what}`,
  });
}

export type ToolVerdict =
  | { readonly kind: 'tool'; readonly tool: RemoteTool }
  | { readonly kind: 'rejected'; readonly name: string; readonly reason: string };

/** Judges one entry of the list by itself. */
export function readTool(entry: unknown, side: Pick<Side, 'era'>): ToolVerdict {
  if (!isObject(entry) || typeof entry['name'] !== 'string')
    return { kind: 'rejected', name: '?', reason: 'the entry has no name' };
  const { name, inputSchema } = entry;
  const reject = (reason: string): ToolVerdict => ({
    kind: 'rejected',
    name: name.slice(0, MAX_NAME_CHARACTERS),
    reason,
  });
  if (name === '' || name.length > MAX_NAME_CHARACTERS)
    return reject(`the name must have 1 to ${MAX_NAME_CHARACTERS} characters`);
  if (isNestedDeeper(entry)) return reject(`it is nested deeper than ${MAX_NESTING} levels`);
  if (!isObject(inputSchema)) return reject('inputSchema is not an object');
  if (inputSchema['type'] !== 'object') return reject('inputSchema must have "type": "object"');
  if (side.era === 'legacy')
    return { kind: 'tool', tool: { name, definition: entry, paramHeaders: NO_HEADERS } };
  const scan = scanParamHeaders(inputSchema);
  return scan.kind === 'invalid'
    ? reject(scan.reason)
    : { kind: 'tool', tool: { name, definition: entry, paramHeaders: scan.headers } };
}

const NO_HEADERS: readonly ParamHeader[] = [];
