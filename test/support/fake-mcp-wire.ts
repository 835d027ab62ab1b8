// The wire of the fake MCP server: what a recorded request is, how a scripted reply is played, and
// the checks that a modern server makes of a request's headers.

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';

export interface RecordedRequest {
  readonly httpMethod: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Name, value pairs as they came over the wire. */
  readonly rawHeaders: readonly string[];
  /** The body's bytes as text; parse `message` for the JSON. */
  readonly body: string;
  readonly message: FakeMessage | undefined;
  /** The remote port: equal for requests on one connection. */
  readonly socketPort: number;
}

export interface FakeMessage {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: unknown;
}

export type FakeReply =
  | {
      readonly kind: 'reply';
      readonly status?: number;
      /** A list is sent as repeated lines. */
      readonly headers?: Readonly<Record<string, string | string[]>>;
      readonly body?: unknown;
    }
  /** Chunks are written one by one; `hold` leaves the response open, `reset` kills the socket. */
  | {
      readonly kind: 'stream';
      readonly status?: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly chunks: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>;
      readonly end?: 'end' | 'reset' | 'hold';
    }
  | { readonly kind: 'hang' }
  | { readonly kind: 'reset' };

const META = 'io.modelcontextprotocol/';

/** Frames one message as an SSE event. */
export function sseEvent(message: object): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}

export async function record(request: IncomingMessage): Promise<RecordedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString('utf8');
  let message: FakeMessage | undefined;
  try {
    message = JSON.parse(body) as FakeMessage;
  } catch {
    message = undefined;
  }
  return {
    httpMethod: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    rawHeaders: request.rawHeaders,
    body,
    message,
    socketPort: request.socket.remotePort ?? 0,
  };
}

export function metaOf(message: FakeMessage): Readonly<Record<string, unknown>> {
  return (message.params?.['_meta'] ?? {}) as Readonly<Record<string, unknown>>;
}

export function eraOf(message: FakeMessage): 'legacy' | 'modern' {
  return `${META}protocolVersion` in metaOf(message) ? 'modern' : 'legacy';
}

/** The required mirrored headers of 2026-07-28; undefined when they equal the body. */
export function headerFault(
  request: RecordedRequest,
  message: FakeMessage,
  version: unknown,
): string | undefined {
  const { headers } = request;
  if (headers['mcp-protocol-version'] !== version)
    return 'MCP-Protocol-Version does not match the body';
  if (headers['mcp-method'] !== message.method) return 'Mcp-Method does not match the body';
  if (message.method !== 'tools/call') return undefined;
  const encoded = String(headers['mcp-name'] ?? '');
  const payload = /^=\?base64\?(.*)\?=$/.exec(encoded)?.[1];
  const name = payload === undefined ? encoded : Buffer.from(payload, 'base64').toString('utf8');
  return name === message.params?.['name'] ? undefined : 'Mcp-Name does not match the body';
}

export function rpcError(
  id: string | number | undefined,
  code: number,
  error: string | { readonly message: string; readonly data: unknown },
): object {
  return {
    jsonrpc: '2.0',
    id: id ?? null,
    error: { code, ...(typeof error === 'string' ? { message: error } : error) },
  };
}

export function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

export async function play(reply: FakeReply, response: ServerResponse): Promise<void> {
  switch (reply.kind) {
    case 'hang':
      return;
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'reply': {
      const isText =
        reply.body === undefined ||
        typeof reply.body === 'string' ||
        reply.body instanceof Uint8Array;
      const type: Record<string, string> = isText ? {} : { 'content-type': 'application/json' };
      response.writeHead(reply.status ?? 200, { ...type, ...reply.headers });
      response.end(isText ? reply.body : JSON.stringify(reply.body));
      return;
    }
    case 'stream':
      return playStream(reply, response);
    default:
      reply satisfies never;
  }
}

async function playStream(
  reply: Extract<FakeReply, { kind: 'stream' }>,
  response: ServerResponse,
): Promise<void> {
  response.writeHead(reply.status ?? 200, {
    'content-type': 'text/event-stream',
    ...reply.headers,
  });
  response.flushHeaders();
  for await (const chunk of reply.chunks) {
    // Each chunk reaches the kernel before the next one is asked for, and a hang-up is seen between them.
    await new Promise<void>((resolve) => response.write(chunk, () => setImmediate(resolve)));
    if (response.destroyed || response.socket === null || response.socket.destroyed) return;
  }
  if (reply.end === 'reset') response.socket?.destroy();
  else if (reply.end !== 'hold') response.end();
}
