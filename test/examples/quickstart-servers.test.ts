// The two servers of the quickstart, started as its fairlead-dev.yaml does, against the official
// clients: they must offer what the McpServers allow, and listen on loopback only.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { parse, parseAllDocuments } from 'yaml';

const QUICKSTART = fileURLToPath(new URL('../../examples/quickstart', import.meta.url));

interface DevProcess {
  readonly name: string;
  readonly command: readonly string[];
  readonly readyUrl: string;
}

const { processes } = parse(await readFile(join(QUICKSTART, 'fairlead-dev.yaml'), 'utf8')) as {
  readonly processes: readonly DevProcess[];
};

for (const process_ of processes) {
  test(`${process_.name} offers the tools that its McpServer allows, on loopback only`, async () => {
    await using server = await startOnFreePort(process_);
    const client = new Client(
      { name: 'test', version: '1' },
      { versionNegotiation: { mode: 'auto' } },
    );
    await client.connect(new StreamableHTTPClientTransport(new URL(server.mcpUrl)));
    const { tools } = await client.listTools();
    const { allow, era } = await readMcpServer(process_.name);
    const offered = tools.map(({ name }) => name);
    assert.deepEqual(
      allow.filter((name) => name !== '*' && !offered.includes(name)),
      [],
    );
    assert.equal(client.getProtocolEra(), era.toLowerCase());
    await client.close();
    for (const address of foreignAddresses()) {
      assert.equal(await canConnect(address, server.port), false, address);
    }
  });
}

test('brew-tea reports progress, and structured results match their text', async () => {
  const desk = processes.find(({ name }) => name === 'desk');
  assert.ok(desk);
  await using server = await startOnFreePort(desk);
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: 'auto' } },
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(server.mcpUrl)));
  const seen: number[] = [];
  await client.callTool(
    { name: 'brew-tea', arguments: { steps: 3, stepMs: 10 } },
    { onprogress: ({ progress }) => seen.push(progress) },
  );
  assert.deepEqual(seen, [1, 2, 3]);
  const { structuredContent, content } = await client.callTool({
    name: 'count-words',
    arguments: { text: 'one two\nthree' },
  });
  assert.deepEqual(structuredContent, { words: 3, characters: 13, lines: 2 });
  assert.deepEqual(content, [{ type: 'text', text: JSON.stringify(structuredContent) }]);
  await client.close();
});

interface RunningServer extends AsyncDisposable {
  readonly port: number;
  readonly mcpUrl: string;
}

async function startOnFreePort({ command, readyUrl }: DevProcess): Promise<RunningServer> {
  const port = await freePort();
  const [, ...args] = command;
  const child = spawn(process.execPath, args, {
    cwd: QUICKSTART,
    env: { ...process.env, PORT: String(port) },
    stdio: 'ignore',
  });
  const exited = once(child, 'exit');
  const readyPath = new URL(readyUrl).pathname;
  while (!(await isAnswering(`http://127.0.0.1:${port}${readyPath}`))) {
    if (child.exitCode !== null)
      throw new Error(`${command.join(' ')} ended with ${child.exitCode}`);
    await sleep(50);
  }
  return {
    port,
    mcpUrl: `http://127.0.0.1:${port}/mcp`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Any answer counts: the reference server has no path for health. */
async function isAnswering(url: string): Promise<boolean> {
  try {
    await (await fetch(url)).body?.cancel();
    return true;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

interface QuickstartServer {
  readonly allow: readonly string[];
  readonly era: string;
}

async function readMcpServer(name: string): Promise<QuickstartServer> {
  const documents = parseAllDocuments(await readFile(join(QUICKSTART, 'mcp-servers.yaml'), 'utf8'));
  for (const document of documents) {
    const { metadata, spec } = document.toJS() as {
      metadata: { name: string };
      spec: { tools: { allow: string[] }; protocol: { era: string } };
    };
    if (metadata.name === name) return { allow: spec.tools.allow, era: spec.protocol.era };
  }
  throw new Error(`the quickstart has no McpServer named ${name}`);
}

function foreignAddresses(): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return addresses
    .filter(({ internal, scopeid }) => !internal && !scopeid)
    .map(({ address }) => address);
}

async function canConnect(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
