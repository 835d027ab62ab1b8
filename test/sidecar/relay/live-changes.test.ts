// Configuration changes while calls run: new calls see the new world, old ones end on theirs.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FakeMcpServer } from '#test/support/fake-mcp-server.ts';
import { SidecarFixture, serverAt, toolNames, until } from '#test/support/sidecar-fixture.ts';

const TOOLS = [{ name: 'slow' }, { name: 'other' }];

function allow(...names: string[]) {
  return { tools: { allow: [names], trustReadOnlyHint: false, overrides: [] } };
}

async function listedBy(sidecar: SidecarFixture): Promise<string[]> {
  return toolNames(await sidecar.modern('tools/list'));
}

test('a tool that is no longer allowed disappears and is refused, while a call of it in flight ends well (R113)', async () => {
  const gate = Promise.withResolvers<void>();
  await using server = await FakeMcpServer.start({
    era: 'both',
    tools: TOOLS,
    onCall: () => gate.promise.then(() => ({ content: [{ type: 'text', text: 'done' }] })),
  });
  await using sidecar = await SidecarFixture.open([
    serverAt('up', server.port, allow('slow', 'other')),
  ]);
  assert.deepEqual(await listedBy(sidecar), ['up__slow', 'up__other']);
  const inFlight = sidecar.modern('tools/call', { name: 'up__slow', arguments: {} });
  await server.waitForRequest((request) => request.message?.method === 'tools/call');
  const connections = server.connectionCount;
  await sidecar.reconfigure([serverAt('up', server.port, allow('other'))]);
  assert.deepEqual(await listedBy(sidecar), ['up__other']);
  const refused = await sidecar.modern('tools/call', { name: 'up__slow', arguments: {} });
  assert.equal(refused.json.error?.code, -32602);
  gate.resolve();
  assert.match((await inFlight).text, /done/);
  assert.equal(server.connectionCount, connections, 'an allowlist is no reason to reconnect');
});

test('servers are added and removed at run time; a removed one loses its tools, sessions and sockets (R10)', async () => {
  await using first = await FakeMcpServer.start({ era: 'legacy' });
  await using second = await FakeMcpServer.start({ era: 'legacy' });
  await using sidecar = await SidecarFixture.open([serverAt('one', first.port)]);
  const session = await sidecar.openSession();
  await sidecar.legacy(session, 'tools/call', { name: 'one__echo', arguments: {} });
  await sidecar.reconfigure([serverAt('one', first.port), serverAt('two', second.port)]);
  assert.deepEqual(await listedBy(sidecar), ['one__echo', 'two__echo']);
  const opened = first.sessions.size;
  assert.ok(opened > 0);
  await sidecar.reconfigure([serverAt('two', second.port)]);
  assert.deepEqual(await listedBy(sidecar), ['two__echo']);
  const refused = await sidecar.legacy(session, 'tools/call', { name: 'one__echo', arguments: {} });
  assert.equal(refused.json.error?.code, -32602);
  await until(() => first.sessions.size === 0);
  await until(() => first.openSockets === 0);
  assert.deepEqual(
    sidecar.status().servers.map((server) => server.alias),
    ['two'],
  );
  assert.equal((await sidecar.modern('tools/list', {}, { path: '/servers/one/mcp' })).status, 404);
});

test('a call in flight on a removed server ends well within the drain timeout', async () => {
  const gate = Promise.withResolvers<void>();
  await using server = await FakeMcpServer.start({
    era: 'both',
    onCall: () => gate.promise.then(() => ({ content: [{ type: 'text', text: 'done' }] })),
  });
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  const inFlight = sidecar.modern('tools/call', { name: 'up__echo', arguments: {} });
  await server.waitForRequest((request) => request.message?.method === 'tools/call');
  await sidecar.reconfigure([]);
  assert.deepEqual(await listedBy(sidecar), []);
  gate.resolve();
  assert.match((await inFlight).text, /done/);
});

test('a changed endpoint opens new connections and retires the old ones', async () => {
  await using before = await FakeMcpServer.start({ era: 'both' });
  await using after = await FakeMcpServer.start({ era: 'both', tools: [{ name: 'fresh' }] });
  await using sidecar = await SidecarFixture.open([serverAt('up', before.port)]);
  assert.deepEqual(await listedBy(sidecar), ['up__echo']);
  await sidecar.reconfigure([serverAt('up', after.port)]);
  assert.deepEqual(await listedBy(sidecar), ['up__fresh']);
  await until(() => before.openSockets === 0);
  await sidecar.modern('tools/call', { name: 'up__fresh', arguments: {} });
  assert.equal(sidecar.lines('call').at(-1)?.['connection_generation'], 2);
});

test('a broken configuration changes nothing for those who call', async () => {
  await using server = await FakeMcpServer.start({ era: 'both' });
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  const { writePlainConfig } = await import('#test/support/sidecar-config.ts');
  await writePlainConfig(sidecar.directory, '{"version":"v1alpha1","servers":[');
  await until(() => sidecar.status().config.rejected !== null);
  assert.deepEqual(await listedBy(sidecar), ['up__echo']);
});
