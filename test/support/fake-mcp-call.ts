// One tools/call as the fake MCP server's script sees it.

import type { ServerResponse } from 'node:http';

import { metaOf, sseEvent } from './fake-mcp-wire.ts';
import type { FakeMessage, RecordedRequest } from './fake-mcp-wire.ts';

export interface FakeCall {
  readonly id: string | number;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly era: 'legacy' | 'modern';
  readonly request: RecordedRequest;
  /** Aborted when the client hung up before the answer, or cancelled the call (legacy). */
  readonly signal: AbortSignal;
  /** Opens the event stream, if needed, and sends one message on it. */
  send(message: object): void;
  progress(progress: number, total?: number): void;
}

export interface CallContext {
  readonly request: RecordedRequest;
  readonly message: FakeMessage;
  readonly era: 'legacy' | 'modern';
  /** Members of every result of this era. */
  readonly envelope: object;
}

export function describeCall(
  { request, message, era }: CallContext,
  response: ServerResponse,
  signal: AbortSignal,
): FakeCall {
  const meta = metaOf(message);
  const send = (event: object): void => {
    if (!response.headersSent)
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    response.write(sseEvent(event));
  };
  const progress = (value: number, total?: number): void => {
    const params = {
      progressToken: meta['progressToken'],
      progress: value,
      ...(total === undefined ? {} : { total }),
    };
    send({ jsonrpc: '2.0', method: 'notifications/progress', params });
  };
  return {
    id: message.id ?? 'none',
    name: String(message.params?.['name']),
    arguments: (message.params?.['arguments'] ?? {}) as Record<string, unknown>,
    meta,
    era,
    request,
    signal,
    send,
    progress,
  };
}

export function echo(call: FakeCall): object {
  return { content: [{ type: 'text', text: JSON.stringify(call.arguments) }] };
}
