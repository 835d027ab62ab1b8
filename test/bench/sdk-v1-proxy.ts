// The peer of the bench: the MCP proxy that one writes with the official SDK v1, a Server and a
// StreamableHTTPServerTransport per agent session, a Client of its own behind each, tools/list
// and tools/call forwarded. Gates are ratios to it. It has no policy and no log.
//
//   node sdk-v1-proxy.mjs --port PORT --upstream http://127.0.0.1:PORT/mcp

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const { values } = parseArgs({
  options: { port: { type: 'string' }, upstream: { type: 'string' } },
});
const upstream = new URL(values.upstream ?? '');
const info = { name: 'sdk-v1-proxy', version: '1.0.0' };
const sessions = new Map<string, StreamableHTTPServerTransport>();

async function openSession(): Promise<StreamableHTTPServerTransport> {
  const client = new Client(info);
  // The SDK's classes miss its own interface under exactOptionalPropertyTypes.
  await client.connect(new StreamableHTTPClientTransport(upstream) as Transport);
  const server = new Server(info, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, (request) => client.listTools(request.params));
  server.setRequestHandler(CallToolRequestSchema, (request) => client.callTool(request.params));
  const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    enableJsonResponse: true,
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: (id) => {
      sessions.delete(id);
      return client.close();
    },
  });
  await server.connect(transport as Transport);
  return transport;
}

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const id = request.headers['mcp-session-id'];
  const transport = typeof id === 'string' ? sessions.get(id) : await openSession();
  if (transport === undefined) {
    response.writeHead(404).end();
    return;
  }
  await transport.handleRequest(request, response);
}

createServer((request, response) => {
  handle(request, response).catch(() => response.destroy());
}).listen(Number(values.port), '127.0.0.1');
process.once('SIGTERM', () => process.exit(0));
