// `fairlead dev` in a terminal: what Ctrl-C reaches, what a broken file does, what happens when a part
// of it dies, and what a person reads.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { modernMessage, sendHttp } from '#test/support/agent-api-fixture.ts';
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
import { until } from '#test/support/sidecar-fixture.ts';

function callEcho(port: number): Promise<{ readonly text: string }> {
  return sendHttp(port, {
    headers: {
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call',
      'Mcp-Name': 'notes__echo',
    },
    body: modernMessage('tools/call', { name: 'notes__echo', arguments: {} }),
  });
}

async function portOf(dev: RunningDev): Promise<number> {
  return Number(new URL(String((await dev.event('ready'))['url'])).port);
}

test('Ctrl-C in a terminal reaches the whole group, and still ends no call and no local process too early', async () => {
  const gate = Promise.withResolvers<void>();
  await using server = await FakeMcpServer.start({
    era: 'both',
    tools: TOOLS,
    onCall: () => gate.promise.then(() => ({ content: [{ type: 'text', text: 'done' }] })),
  });
  const localPort = await freePort();
  const program = `require('node:http').createServer((q, r) => r.end('ok')).listen(${String(localPort)}, '127.0.0.1')`;
  const local = `processes: [{ name: local, command: [node, -e, ${JSON.stringify(program)}], readyUrl: "http://127.0.0.1:${String(localPort)}/" }]`;
  await using dev = new RunningDev(
    await makeDirectory({
      'all.yaml': manifests(server.port, '["*"]'),
      'fairlead-dev.yaml': local,
    }),
  );
  const port = await portOf(dev);
  const call = callEcho(port);
  await server.waitForRequest((request) => request.message?.method === 'tools/call');
  // Twice: npm and its like pass on what the terminal has sent already.
  dev.pressCtrlC();
  dev.process.signal('SIGINT');
  await dev.event('stopping');
  assert.equal((await sendHttp(localPort, { method: 'GET', path: '/' })).text, 'ok');
  gate.resolve();
  assert.match((await call).text, /done/);
  assert.deepEqual(await dev.process.exited, { code: 0, signal: null });
  await gone(localPort);
});

test('a second Ctrl-C ends at once, with the calls in flight', async () => {
  await using server = await FakeMcpServer.start({
    era: 'both',
    tools: TOOLS,
    onCall: () => new Promise(() => {}),
  });
  await using dev = new RunningDev(
    await makeDirectory({ 'all.yaml': manifests(server.port, '["*"]') }),
  );
  const port = await portOf(dev);
  const call = callEcho(port).then(
    () => 'answered',
    () => 'ended',
  );
  await server.waitForRequest((request) => request.message?.method === 'tools/call');
  dev.pressCtrlC();
  await dev.event('stopping');
  // Longer than npm and its like need to pass the first one on.
  await systemClock.sleep(700);
  dev.pressCtrlC();
  assert.equal((await dev.process.exited).code, 1);
  assert.equal(await call, 'ended');
  await gone(port);
  assert.deepEqual(await readdir(dev.temporary), []);
});

test('a file that breaks or vanishes leaves everything as it was, is told once, and heals', async () => {
  await using server = await FakeMcpServer.start({ era: 'both', tools: TOOLS });
  const good = manifests(server.port, '["*"]');
  const directory = await makeDirectory({ 'all.yaml': good });
  await using dev = new RunningDev(directory);
  const port = await portOf(dev);
  await writeFile(join(directory, 'all.yaml'), `${good}\nspec: [`);
  const [issue] = (await dev.event('invalid'))['issues'] as { message: string; line: number }[];
  assert.match(issue?.message ?? '', /not valid YAML/);
  assert.deepEqual(await listed(port), ['notes__echo', 'notes__other']);
  // The same problem again, with another change elsewhere in the directory.
  await writeFile(join(directory, 'notes.txt'), 'unrelated');
  await rm(join(directory, 'all.yaml'));
  await dev.event('error');
  assert.equal(dev.events().filter(({ event }) => event === 'invalid').length, 1);
  assert.deepEqual(await listed(port), ['notes__echo', 'notes__other']);
  await writeFile(join(directory, 'all.yaml'), manifests(server.port, '[echo]'));
  await dev.event('reloaded');
  assert.deepEqual(await listed(port), ['notes__echo']);
});

test('a sidecar that dies ends dev with a failure, and says so', async () => {
  await using server = await FakeMcpServer.start({ era: 'both', tools: TOOLS });
  await using dev = new RunningDev(
    await makeDirectory({ 'all.yaml': manifests(server.port, '["*"]') }),
  );
  await portOf(dev);
  process.kill(childOf(dev.process.pid, 'sidecar'), 'SIGKILL');
  assert.equal((await dev.process.exited).code, 1);
  assert.match(String((await dev.event('error'))['message']), /sidecar ended/);
});

function childOf(pid: number, word: string): number {
  const table = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(pid)], {
    encoding: 'utf8',
  });
  const line = table.split('\n').find((row) => row.includes(` ${word} `));
  assert.ok(line !== undefined, table);
  return Number.parseInt(line, 10);
}

test('a local process that ends is told with its last words, and dev goes on', async () => {
  await using server = await FakeMcpServer.start({ era: 'both', tools: TOOLS });
  const local =
    'processes: [{ name: brief, command: [node, -e, "console.log(\'last words\'); process.exit(3)"] }]';
  await using dev = new RunningDev(
    await makeDirectory({
      'all.yaml': manifests(server.port, '["*"]'),
      'fairlead-dev.yaml': local,
    }),
  );
  const port = await portOf(dev);
  const ended = await dev.event('process-ended');
  assert.deepEqual(
    [ended['name'], ended['code'], ended['lastLines']],
    ['brief', 3, ['last words']],
  );
  assert.deepEqual(await listed(port), ['notes__echo', 'notes__other']);
});

test('a person reads the address, the tools and what to paste; without a terminal there are no colours', async () => {
  await using server = await FakeMcpServer.start({ era: 'both', tools: TOOLS });
  const directory = await makeDirectory({ 'all.yaml': manifests(server.port, '["*"]') });
  await using dev = new RunningDev(directory, '--output', 'text');
  const [, url = ''] = await dev.process.waitForOutput(/Fairlead serves (\S+)/);
  await dev.process.waitForOutput(/Stop: Ctrl-C/);
  const { output } = dev.process;
  assert.match(output, /✓ notes {2}2 tools/);
  assert.match(output, /notes__echo/);
  assert.ok(output.includes(`claude mcp add --transport http fairlead ${url}`), output);
  assert.ok(output.includes(`{"mcpServers":{"fairlead":{"type":"http","url":"${url}"}}}`));
  assert.doesNotMatch(output, /\u001b/);
  await callEcho(Number(new URL(url).port));
  await until(() => /call notes echo {2}ok/.test(dev.process.output), 20_000);
});

test('what is invalid from the start is told as such, and nothing is served', async () => {
  await using dev = new RunningDev(
    await makeDirectory({ 'all.yaml': manifests(9, '[]') }),
    '--output',
    'text',
  );
  assert.equal((await dev.process.exited).code, 1);
  assert.match(dev.process.output, /^Nothing is served: 1 problem\.\n {2}\S+all\.yaml:7:\d+: /);
});
