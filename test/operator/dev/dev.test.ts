// `fairlead dev` as a person runs it: a process, a directory that is edited, real servers behind.

import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { initializeParams, modernMessage, sendHttp } from '#test/support/agent-api-fixture.ts';
import { FakeMcpServer } from '#test/support/fake-mcp-server.ts';
import {
  freePort,
  gone,
  listed,
  makeDirectory,
  manifests,
  RunningDev,
  TOOLS,
} from '#test/support/running-dev.ts';

test('the first JSON line is the ready event with the URL and the merged tools; edits apply live and bad ones change nothing (R113)', async () => {
  await using server = await FakeMcpServer.start({ era: 'both', tools: TOOLS });
  const directory = await makeDirectory({ 'all.yaml': manifests(server.port, '["*"]') });
  await using dev = new RunningDev(directory);
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
  await using dev = new RunningDev(
    await makeDirectory({ 'all.yaml': manifests(server.port, '["*"]') }),
  );
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
  await using dev = new RunningDev(
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
    await using dev = new RunningDev(await makeDirectory(files), ...flags);
    assert.equal((await dev.process.exited).code, code, dev.process.output);
    assert.match(dev.process.output, message);
    assert.doesNotMatch(dev.process.output, /"event":"ready"/);
    assert.deepEqual(await readdir(dev.directory), Object.keys(files).toSorted());
  }
  blocker.close();
  await using missing = new RunningDev(join(tmpdir(), 'fairlead-there-is-no-such-directory'));
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
  await using dev = new RunningDev(await makeDirectory({ 'a.yaml': `${dead}---\n${alive}` }));
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
