// Real servers, written with the official SDKs, on loopback: v1 with sessions (the legacy era) and
// v2's handler (the modern era, and the legacy era without sessions).

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer as V1Server } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

export interface SdkServer extends AsyncDisposable {
  readonly url: string;
  readonly sessions: ReadonlyMap<string, unknown>;
  /** Resolves when the tool `wait` has been told to stop. */
  readonly stopped: Promise<void>;
  /** Resolves when the tool `wait` runs. */
  readonly waiting: Promise<void>;
  forgetSessions(): void;
}

interface Signals {
  readonly stopped: PromiseWithResolvers<void>;
  readonly waiting: PromiseWithResolvers<void>;
}

function newSignals(): Signals {
  return { stopped: Promise.withResolvers<void>(), waiting: Promise.withResolvers<void>() };
}

function untilAborted(signal: AbortSignal, signals: Signals): Promise<{ content: [] }> {
  signals.waiting.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      signals.stopped.resolve();
      resolve({ content: [] });
    });
  });
}

export async function startV1Server(options: {
  readonly enableJsonResponse: boolean;
}): Promise<SdkServer> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const signals = newSignals();
  const open = async (): Promise<StreamableHTTPServerTransport> => {
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      enableJsonResponse: options.enableJsonResponse,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    await createV1(signals).connect(transport as Transport);
    return transport;
  };
  const listener: RequestListener = (request, response) => {
    const id = request.headers['mcp-session-id'];
    const transport = typeof id === 'string' ? sessions.get(id) : undefined;
    if (typeof id === 'string' && transport === undefined) {
      response
        .writeHead(404, { 'content-type': 'application/json' })
        .end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}');
      return;
    }
    (transport === undefined ? open() : Promise.resolve(transport))
      .then((known) => known.handleRequest(request, response))
      .catch(() => response.destroy());
  };
  return listen(listener, { sessions, signals });
}

function createV1(signals: Signals): V1Server {
  const server = new V1Server({ name: 'v1', version: '1.0.0' });
  server.registerTool(
    'add',
    { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } },
    async ({ a, b }, extra) => {
      const progressToken = extra._meta?.progressToken;
      if (progressToken !== undefined)
        await extra.sendNotification({
          method: 'notifications/progress',
          params: { progressToken, progress: 1, total: 2 },
        });
      return {
        content: [{ type: 'text', text: String(a + b) }],
        structuredContent: { sum: a + b },
      };
    },
  );
  server.registerTool('wait', { inputSchema: {} }, (_args, extra) =>
    untilAborted(extra.signal, signals),
  );
  return server;
}

export async function startV2Server(options: {
  readonly legacy: 'stateless' | 'reject';
}): Promise<SdkServer> {
  const signals = newSignals();
  const handle = toNodeHandler(
    createMcpHandler(() => createV2(signals), options),
  ) as RequestListener;
  return listen(handle, { sessions: new Map(), signals });
}

function createV2(signals: Signals): McpServer {
  const server = new McpServer({ name: 'v2', version: '1.0.0' });
  const inputSchema = z.object({ a: z.number(), b: z.number() });
  server.registerTool(
    'add',
    { inputSchema, outputSchema: z.object({ sum: z.number() }) },
    async ({ a, b }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      if (progressToken !== undefined)
        await mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken, progress: 1, total: 2 },
        });
      return {
        content: [{ type: 'text', text: String(a + b) }],
        structuredContent: { sum: a + b },
      };
    },
  );
  const region = z.string().meta({ 'x-mcp-header': 'Region' });
  server.registerTool('where', { inputSchema: z.object({ region }) }, ({ region: where }) => ({
    content: [{ type: 'text', text: where }],
  }));
  server.registerTool(
    'numbers',
    { inputSchema: z.object({}), outputSchema: z.array(z.number()) },
    () => ({ content: [], structuredContent: [1, 2] }),
  );
  server.registerTool('wait', { inputSchema: z.object({}) }, (_args, { mcpReq }) =>
    untilAborted(mcpReq.signal, signals),
  );
  return server;
}

async function listen(
  listener: RequestListener,
  { sessions, signals }: { readonly sessions: Map<string, unknown>; readonly signals: Signals },
): Promise<SdkServer> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    sessions,
    stopped: signals.stopped.promise,
    waiting: signals.waiting.promise,
    forgetSessions: () => sessions.clear(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
