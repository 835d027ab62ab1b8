// A small MCP server of the 2026-07-28 protocol, to copy and change. It is stateless: each request
// gets an McpServer of its own, and what must outlive a request (the notes) is kept outside it.
// It listens on 127.0.0.1 only.
//
//   node servers/modern.ts            port 7322
//   PORT=8080 node servers/modern.ts

import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import {
  hostHeaderValidation,
  localhostOriginValidation,
  toNodeHandler,
} from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

const PORT = Number(process.env.PORT ?? 7322);
const HOST = '127.0.0.1';

const notes: string[] = [];

function createDesk(): McpServer {
  const server = new McpServer({ name: 'desk', version: '1.0.0' });
  registerCountWords(server);
  registerRollDice(server);
  registerBrewTea(server);
  registerAddNote(server);
  return server;
}

function registerCountWords(server: McpServer): void {
  server.registerTool(
    'count-words',
    {
      title: 'Count words',
      description: 'Counts the words, characters and lines of a text.',
      inputSchema: z.object({ text: z.string().max(100_000).describe('The text to count.') }),
      outputSchema: z.object({ words: z.int(), characters: z.int(), lines: z.int() }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    ({ text }) => {
      const words = text.split(/\s+/).filter((word) => word !== '').length;
      return structured({ words, characters: text.length, lines: text.split('\n').length });
    },
  );
}

function registerRollDice(server: McpServer): void {
  server.registerTool(
    'roll-dice',
    {
      title: 'Roll dice',
      description: 'Rolls dice and adds them up.',
      inputSchema: z.object({
        count: z.int().min(1).max(100).default(1).describe('How many dice.'),
        sides: z.int().min(2).max(1000).default(6).describe('Sides of each.'),
      }),
      outputSchema: z.object({ rolls: z.array(z.int()), total: z.int() }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    ({ count, sides }) => {
      const rolls = Array.from({ length: count }, () => 1 + Math.floor(Math.random() * sides));
      return structured({ rolls, total: rolls.reduce((sum, roll) => sum + roll, 0) });
    },
  );
}

function registerBrewTea(server: McpServer): void {
  server.registerTool(
    'brew-tea',
    {
      title: 'Brew tea',
      description: 'Takes its time and reports progress while it does.',
      inputSchema: z.object({
        kind: z.enum(['green', 'black', 'mint']).default('green').describe('Which tea.'),
        steps: z.int().min(1).max(50).default(5).describe('How many steps of progress.'),
        stepMs: z.int().min(10).max(10_000).default(400).describe('Milliseconds per step.'),
      }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    async ({ kind, steps, stepMs }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      for (let step = 1; step <= steps; step += 1) {
        // The signal fires when the caller goes away: then there is nobody to brew for.
        await sleep(stepMs, undefined, { signal: mcpReq.signal });
        if (progressToken === undefined) continue;
        const params = {
          progressToken,
          progress: step,
          total: steps,
          message: `brewing ${kind} tea`,
        };
        await mcpReq.notify({ method: 'notifications/progress', params });
      }
      return { content: [{ type: 'text', text: `Your ${kind} tea is ready.` }] };
    },
  );
}

function registerAddNote(server: McpServer): void {
  server.registerTool(
    'add-note',
    {
      title: 'Add a note',
      description: 'Keeps a note until the server ends, and returns all notes.',
      inputSchema: z.object({ note: z.string().min(1).max(1000).describe('What to remember.') }),
      outputSchema: z.object({ notes: z.array(z.string()) }),
      annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    },
    ({ note }) => {
      notes.push(note);
      return structured({ notes: [...notes] });
    },
  );
}

/** Clients that know no structured content read the same value as text. */
function structured<T extends Record<string, unknown>>(
  value: T,
): { content: { type: 'text'; text: string }[]; structuredContent: T } {
  return { content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value };
}

const handleMcp = toNodeHandler(
  createMcpHandler(createDesk, { legacy: 'reject' }),
) as RequestListener;
// A web page that a browser shows must not reach this server through the user's own machine.
// A proxy in front of it may pass on its own name: HOSTS=desk.example.com
const isLocalHost = hostHeaderValidation([
  'localhost',
  '127.0.0.1',
  ...(process.env.HOSTS ?? '').split(','),
]);
const isLocalOrigin = localhostOriginValidation();

const server = createServer((request, response) => {
  if (!isLocalHost(request, response) || !isLocalOrigin(request, response)) return;
  const { pathname } = new URL(request.url ?? '/', 'http://localhost');
  if (pathname === '/mcp') {
    handleMcp(request, response);
  } else if (pathname === '/healthz') {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('ok\n');
  } else {
    response.writeHead(404).end();
  }
});

server.once('error', (error) => {
  console.error(`desk: cannot listen on ${HOST}:${PORT}: ${error.message}`);
  process.exitCode = 1;
});
server.listen(PORT, HOST, () => {
  const { port } = server.address() as AddressInfo;
  console.error(`desk: http://${HOST}:${port}/mcp`);
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    server.close();
    server.closeAllConnections();
  });
}
