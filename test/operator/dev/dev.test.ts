// `fairlead dev` as a person runs it: a process, a directory that is edited, real servers behind.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { initializeParams, modernMessage, sendHttp } from '#test/support/agent-api-fixture.ts';
import { ManagedProcess } from '#test/support/control-plane/managed-process.ts';
import { FakeMcpServer } from '#test/support/fake-mcp-server.ts';
import { until } from '#test/support/sidecar-fixture.ts';

const PROGRAM = join(import.meta.dirname, '../../../bin/fairlead.ts');
const TOOLS = [{ name: 'echo' }, { name: 'other' }];

type Event = Readonly<Record<string, unknown>>;

function manifests(port: number, allow: string): string {
  return `apiVersion: fairlead.dev/v1alpha1
kind: McpServer
metadata: { name: notes }
spec:
  endpoint: http://127.0.0.1:${String(port)}/mcp
  egress: { allowedHosts: [127.0.0.1], allowedPorts: [${String(port)}] }
  tools: { allow: ${allow} }
---
apiVersion: fairlead.dev/v1alpha1
kind: McpBinding
metadata: { name: desk }
spec:
  workload: { matchLabels: { app: desk } }
  user: { type: Static, static: { id: me } }
  servers: [{ name: notes }]
`;
}

class Dev implements AsyncDisposable {
  readonly directory: string;
  readonly process: ManagedProcess;

  constructor(directory: string, ...flags: string[]) {
    this.directory = directory;
    const command = [
      process.execPath,
      PROGRAM,
      'dev',
      directory,
      '--output',
      'json',
      '--port',
      '0',
      ...flags,
    ];
    this.process = new ManagedProcess({ name: 'dev', command });
  }

  events(): Event[] {
    return this.process.output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Event);
  }

  async event(name: string, count = 1): Promise<Event> {
    await until(
      () =>
        this.events().filter((event) => event['event'] === name).length >= count ||
        this.process.exit !== undefined,
      20_000,
    );
    const found = this.events().filter((event) => event['event'] === name)[count - 1];
    assert.ok(found !== undefined, this.process.output);
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}

async function makeDirectory(files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-dev-test-'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  return directory;
}

async function listed(port: number): Promise<string[]> {
  const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' };
  const answer = await sendHttp(port, { headers, body: modernMessage('tools/list') });
  return ((answer.json.result?.['tools'] as { name: string }[] | undefined) ?? []).map(
    ({ name }) => name,
  );
}

test('the first JSON line is the ready event with the URL and the merged tools; edits apply live and bad ones change nothing (R113)', async () => {
  await using server = await FakeMcpServer.start({ era: 'both', tools: TOOLS });
  const directory = await makeDirectory({ 'all.yaml': manifests(server.port, '["*"]') });
  await using dev = new Dev(directory);
  const ready = await dev.event('ready');
  assert.equal(dev.events()[0]?.['event'], 'ready');
  const url = new URL(String(ready['url']));
  assert.equal(url.hostname, '127.0.0.1');
  assert.match(JSON.stringify(ready['servers']), /"notes__echo"/);
  const port = Number(url.port);
  assert.deepEqual(await listed(port), ['notes__echo', 'notes__other']);

  await writeFile(join(directory, 'all.yaml'), manifests(server.port, '[echo]'));
  assert.deepEqual((await dev.event('reloaded'))['removed'], ['notes__other']);
  assert.deepEqual(await listed(port), ['notes__echo']);

  await writeFile(join(directory, 'all.yaml'), manifests(server.port, '[]'));
  const invalid = await dev.event('invalid');
  const [issue] = invalid['issues'] as { file: string; line: number; path: string }[];
  assert.deepEqual([issue?.line, issue?.path], [7, 'spec.tools.allow']);
  assert.ok(issue?.file.endsWith('all.yaml'));
  assert.deepEqual(await listed(port), ['notes__echo']);

  await writeFile(join(directory, 'all.yaml'), manifests(server.port, '[echo, other]'));
  await dev.event('reloaded', 2);
  assert.deepEqual(await listed(port), ['notes__echo', 'notes__other']);
});

test('Ctrl-C lets calls in flight finish and exits 0; nothing lingers', async () => {
  const gate = Promise.withResolvers<void>();
  await using server = await FakeMcpServer.start({
    era: 'both',
    tools: TOOLS,
    onCall: () => gate.promise.then(() => ({ content: [{ type: 'text', text: 'done' }] })),
  });
  await using dev = new Dev(await makeDirectory({ 'all.yaml': manifests(server.port, '["*"]') }));
  const port = Number(new URL(String((await dev.event('ready'))['url'])).port);
  const headers = {
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': 'tools/call',
    'Mcp-Name': 'notes__echo',
  };
  const call = sendHttp(port, {
    headers,
    body: modernMessage('tools/call', { name: 'notes__echo', arguments: {} }),
  });
  await server.waitForRequest((request) => request.message?.method === 'tools/call');
  dev.process.signal('SIGINT');
  await dev.event('stopping');
  gate.resolve();
  assert.match((await call).text, /done/);
  assert.deepEqual(await dev.process.exited, { code: 0, signal: null });
  await assert.rejects(sendHttp(port, { method: 'GET', path: '/status' }), /ECONNREFUSED/);
});

test('kill -9 leaves neither the sidecar nor the local processes behind', async () => {
  const program =
    "require('node:http').createServer((q, r) => r.end('ok')).listen(Number(process.env.PORT), '127.0.0.1'); setInterval(() => {}, 1000)";
  await using server = await FakeMcpServer.start({ era: 'both', tools: TOOLS });
  const localPort = await freePort();
  const local = `processes:\n  - name: local\n    command: [node, -e, ${JSON.stringify(program)}]\n    env: { PORT: "${String(localPort)}" }\n    readyUrl: http://127.0.0.1:${String(localPort)}/\n`;
  await using dev = new Dev(
    await makeDirectory({
      'all.yaml': manifests(server.port, '["*"]'),
      'fairlead-dev.yaml': local,
    }),
  );
  const port = Number(new URL(String((await dev.event('ready'))['url'])).port);
  assert.equal((await sendHttp(localPort, { method: 'GET', path: '/' })).text, 'ok');
  await dev.process.kill();
  await gone(port);
  await gone(localPort);
});

async function gone(port: number): Promise<void> {
  let isGone = false;
  for (let tries = 0; tries < 100 && !isGone; tries += 1) {
    isGone = await sendHttp(port, { method: 'GET', path: '/status' }).then(
      () => false,
      () => true,
    );
    if (!isGone) await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok(isGone, `port ${String(port)} still answers`);
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => probe.once('listening', resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

test('a port in use, an empty, a missing and an invalid directory are clear errors, and nothing is started', async () => {
  const blocker = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => blocker.once('listening', resolve));
  const { port } = blocker.address() as { port: number };
  const started = '\n    env: {}\n';
  const rows: { files: Record<string, string>; flags: string[]; code: number; message: RegExp }[] =
    [
      {
        files: {
          'a.yaml': manifests(9, '["*"]'),
          'fairlead-dev.yaml': `processes:\n  - name: x\n    command: [node, -e, "require('fs').writeFileSync('started', '')"]${started}`,
        },
        flags: ['--port', String(port)],
        code: 69,
        message: /already in use/,
      },
      { files: {}, flags: [], code: 66, message: /no McpServer or McpBinding/ },
      {
        files: { 'a.yaml': manifests(9, '["*"]').split('---')[0] ?? '' },
        flags: [],
        code: 66,
        message: /has no McpBinding/,
      },
      { files: { 'a.yaml': 'a: [' }, flags: [], code: 1, message: /not valid YAML/ },
      {
        files: { 'a.yaml': manifests(9, '["*"]') },
        flags: ['--binding', 'default/none'],
        code: 64,
        message: /no McpBinding .*none/,
      },
      {
        files: { 'a.yaml': manifests(9, '["*"]'), 'fairlead-dev.yaml': 'processes: [{ name: X }]' },
        flags: [],
        code: 1,
        message: /processes\[0\]/,
      },
    ];
  for (const { files, flags, code, message } of rows) {
    await using dev = new Dev(await makeDirectory(files), ...flags);
    assert.equal((await dev.process.exited).code, code, dev.process.output);
    assert.match(dev.process.output, message);
    assert.doesNotMatch(dev.process.output, /"event":"ready"/);
  }
  blocker.close();
  await using missing = new Dev(join(tmpdir(), 'fairlead-there-is-no-such-directory'));
  assert.equal((await missing.process.exited).code, 66);
});

test('a server that is down is named with its reason, and the others work', async () => {
  await using server = await FakeMcpServer.start({ era: 'both', tools: TOOLS });
  const dead =
    manifests(await freePort(), '["*"]')
      .split('---')[0]
      ?.replace('name: notes', 'name: dead') ?? '';
  const alive = manifests(server.port, '["*"]').replace(
    '[{ name: notes }]',
    '[{ name: notes }, { name: dead }]',
  );
  await using dev = new Dev(await makeDirectory({ 'a.yaml': `${dead}---\n${alive}` }));
  const ready = await dev.event('ready');
  const servers = ready['servers'] as { alias: string; state: string; reason?: string }[];
  assert.deepEqual(servers.map(({ alias, state }) => `${alias} ${state}`).toSorted(), [
    'dead unavailable',
    'notes ok',
  ]);
  assert.match(servers.find(({ alias }) => alias === 'dead')?.reason ?? '', /SERVER_UNAVAILABLE/);
  const port = Number(new URL(String(ready['url'])).port);
  const opened = await sendHttp(port, {
    body: { jsonrpc: '2.0', id: 1, method: 'initialize', params: initializeParams() },
  });
  assert.equal(opened.status, 200);
  assert.deepEqual(await listed(port), ['notes__echo', 'notes__other']);
});
