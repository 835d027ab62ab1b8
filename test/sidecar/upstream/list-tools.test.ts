import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FairleadError } from '#core/errors.ts';
import type { ErrorCode } from '#core/errors.ts';
import { openLegacySession } from '#sidecar/upstream/legacy-session.ts';
import { listTools, readTool } from '#sidecar/upstream/list-tools.ts';
import { SideNegotiator } from '#sidecar/upstream/negotiate.ts';
import type { Side, ToolListing, UpstreamTarget } from '#sidecar/upstream/upstream-types.ts';
import { FakeClock } from '#test/support/fake-clock.ts';
import { FakeMcpServer } from '#test/support/fake-mcp-server.ts';
import type { FakeMessage, FakeReply, FakeTool } from '#test/support/fake-mcp-server.ts';

import { targetFor } from './upstream-target.ts';

const MODERN: Side = {
  era: 'modern',
  protocolVersion: '2026-07-28',
  capabilities: { tools: {} },
  serverInfo: undefined,
};

async function list(target: UpstreamTarget, era: Side['era']): Promise<ToolListing> {
  if (era === 'modern') return listTools(target, MODERN, undefined);
  const session = await openLegacySession(target, {
    protocolVersion: '2025-11-25',
    clientCapabilities: {},
  });
  return listTools(target, session.side, session);
}

async function errorOf(listing: Promise<unknown>): Promise<FairleadError> {
  try {
    await listing;
  } catch (error) {
    assert.ok(error instanceof FairleadError);
    return error;
  }
  return assert.fail('there is a list');
}

const names = (listing: ToolListing): string[] => listing.tools.map((tool) => tool.name);

for (const era of ['legacy', 'modern'] as const) {
  for (const answers of ['json', 'sse'] as const) {
    test(`all pages of a ${era} server that answers as ${answers} are read`, async () => {
      const tools = Array.from({ length: 7 }, (_none, index) => ({
        name: `t${index}`,
        vendor: { n: index },
      }));
      await using server = await FakeMcpServer.start({ era, answers, pageSize: 3, tools });
      await using target = targetFor(server.url);
      const listing = await list(target, era);
      assert.deepEqual(
        names(listing),
        tools.map((tool) => tool.name),
      );
      assert.deepEqual(listing.tools[3]?.definition, {
        inputSchema: { type: 'object' },
        name: 't3',
        vendor: { n: 3 },
      });
      assert.deepEqual(
        server.received('tools/list').map((request) => request.message?.params?.['cursor']),
        [undefined, '3', '6'],
      );
    });
  }
}

/** Answers each tools/list by what `page` makes of its cursor. */
function pages(server: FakeMcpServer, page: (cursor: unknown) => object): void {
  server.intercept(({ message }) => {
    if (message?.method !== 'tools/list') return undefined;
    return {
      kind: 'reply',
      body: { jsonrpc: '2.0', id: message.id, result: page(message.params?.['cursor']) },
    } satisfies FakeReply;
  });
}

test('an empty string is a cursor like any other', async () => {
  await using server = await FakeMcpServer.start({ era: 'modern' });
  pages(server, (cursor) =>
    cursor === undefined ? { tools: [tool('a')], nextCursor: '' } : { tools: [tool('b')] },
  );
  await using target = targetFor(server.url);
  assert.deepEqual(names(await list(target, 'modern')), ['a', 'b']);
});

function tool(name: string, more: object = {}): FakeTool {
  return { name, inputSchema: { type: 'object' }, ...more };
}

const endless: readonly (readonly [
  what: string,
  page: (cursor: unknown) => object,
  requests: number,
])[] = [
  ['the same cursor twice', () => ({ tools: [tool('a')], nextCursor: 'x' }), 2],
  ['an empty cursor for ever', () => ({ tools: [], nextCursor: '' }), 2],
  [
    'a new cursor for ever',
    (cursor) => ({ tools: [], nextCursor: String(Number(cursor ?? 0) + 1) }),
    100,
  ],
  [
    'more tools than anyone has',
    (cursor) => ({
      tools: Array.from({ length: 900 }, (_none, index) => tool(`${String(cursor)}-${index}`)),
      nextCursor: String(Number(cursor ?? 0) + 1),
    }),
    6,
  ],
];

for (const [what, page, requests] of endless) {
  test(`a list with ${what} fails as a whole after ${requests} requests`, async () => {
    await using server = await FakeMcpServer.start({ era: 'modern' });
    pages(server, page);
    await using target = targetFor(server.url);
    assert.equal((await errorOf(list(target, 'modern'))).code, 'UPSTREAM_PROTOCOL_ERROR');
    assert.equal(server.received('tools/list').length, requests);
  });
}

test('the pages of a list are together no larger than one answer may be', async () => {
  await using server = await FakeMcpServer.start({ era: 'modern' });
  pages(server, (cursor) => ({
    tools: [tool(`t${String(cursor)}`, { description: 'x'.repeat(6_000) })],
    nextCursor: String(Number(cursor ?? 0) + 1),
  }));
  await using target = targetFor(server.url, { limits: { maxResponseBytes: 20_000 } });
  assert.equal((await errorOf(list(target, 'modern'))).code, 'RESPONSE_TOO_LARGE');
  assert.equal(server.received('tools/list').length, 4);
});

test('one deadline covers all pages', async () => {
  const clock = new FakeClock();
  await using server = await FakeMcpServer.start({ era: 'modern' });
  let served = 0;
  pages(server, () => {
    served += 1;
    clock.advance(9_000);
    return { tools: [], nextCursor: `c${served}` };
  });
  await using target = targetFor(server.url, { clock });
  assert.equal((await errorOf(list(target, 'modern'))).code, 'SERVER_UNAVAILABLE');
  assert.equal(served, 4);
});

test('a page that never comes fails at the deadline', async () => {
  const clock = new FakeClock();
  await using server = await FakeMcpServer.start({ era: 'modern' });
  server.replyTo('tools/list', { kind: 'hang' });
  await using target = targetFor(server.url, { clock });
  const failed = errorOf(list(target, 'modern'));
  await server.waitForRequest(() => true);
  clock.advance(30_000);
  assert.equal((await failed).code, 'SERVER_UNAVAILABLE');
});

test('a failure on a later page fails the whole list', async () => {
  await using server = await FakeMcpServer.start({
    era: 'modern',
    pageSize: 1,
    tools: [tool('a'), tool('b')],
  });
  server.intercept(({ message }) =>
    message?.params?.['cursor'] === undefined ? undefined : { kind: 'reply', status: 503 },
  );
  await using target = targetFor(server.url);
  assert.equal((await errorOf(list(target, 'modern'))).code, 'SERVER_UNAVAILABLE');
});

const badAnswers: readonly (readonly [what: string, result: object, code: ErrorCode])[] = [
  ['no list', {}, 'UPSTREAM_PROTOCOL_ERROR'],
  ['a list that is an object', { tools: {} }, 'UPSTREAM_PROTOCOL_ERROR'],
  ['a cursor that is a number', { tools: [], nextCursor: 7 }, 'UPSTREAM_PROTOCOL_ERROR'],
];

for (const [what, result, code] of badAnswers) {
  test(`tools/list answered with ${what} is ${code}`, async () => {
    await using server = await FakeMcpServer.start({ era: 'modern' });
    pages(server, () => result);
    await using target = targetFor(server.url);
    assert.equal((await errorOf(list(target, 'modern'))).code, code);
  });
}

test('a lost session is told as such', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  await using target = targetFor(server.url);
  const session = await openLegacySession(target, {
    protocolVersion: '2025-11-25',
    clientCapabilities: {},
  });
  server.forgetSessions();
  assert.equal((await errorOf(listTools(target, session.side, session))).code, 'SESSION_LOST');
});

test('a server that announces no tools and knows no tools/list has none', async () => {
  await using server = await FakeMcpServer.start({ era: 'modern', capabilities: { prompts: {} } });
  server.intercept(({ message }) =>
    message?.method === 'tools/list'
      ? { kind: 'reply', status: 404, body: notFound(message) }
      : undefined,
  );
  await using target = targetFor(server.url);
  const side = await new SideNegotiator(target).sideFor('modern');
  assert.deepEqual(await listTools(target, side, undefined), {
    tools: [],
    rejected: [],
    ttlMs: undefined,
    cacheScope: 'private',
  });
  assert.equal((await errorOf(list(target, 'modern'))).code, 'UPSTREAM_REFUSED');
});

function notFound(message: FakeMessage): object {
  return { jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'Method not found' } };
}

test('broken tools are left out one by one, with a reason, and a broken output schema breaks nothing', async () => {
  const dangling = tool('dangling', {
    outputSchema: { type: 'object', properties: { a: { $ref: '#/$defs/missing' } } },
  });
  const entries = [
    tool('good'),
    dangling,
    null,
    { inputSchema: { type: 'object' } },
    { name: '' },
    { name: 'x'.repeat(257), inputSchema: { type: 'object' } },
    { name: 'no-schema' },
    { name: 'list-schema', inputSchema: { type: 'array' } },
    tool('good', { description: 'again' }),
    tool('bad-header', {
      inputSchema: { type: 'object', properties: { a: { type: 'number', 'x-mcp-header': 'A' } } },
    }),
  ];
  await using server = await FakeMcpServer.start({ era: 'modern' });
  pages(server, () => ({ tools: entries }));
  await using target = targetFor(server.url);
  const listing = await list(target, 'modern');
  assert.deepEqual(names(listing), ['good', 'dangling']);
  assert.equal(listing.tools[0]?.definition['description'], undefined);
  assert.deepEqual(
    listing.rejected.map(({ name }) => name.slice(0, 12)),
    ['?', '?', '', 'x'.repeat(12), 'no-schema', 'list-schema', 'good', 'bad-header'],
  );
  assert.match(listing.rejected.at(-1)?.reason ?? '', /string, integer or boolean/);
});

test('x-mcp-header is read for modern servers and means nothing on legacy ones (R54)', () => {
  const entry = tool('a', {
    inputSchema: {
      type: 'object',
      properties: { r: { type: 'string', 'x-mcp-header': 'Region' } },
    },
  });
  const modern = readTool(entry, { era: 'modern' });
  assert.deepEqual(modern.kind === 'tool' ? modern.tool.paramHeaders : undefined, [
    { header: 'Mcp-Param-Region', path: ['r'] },
  ]);
  const legacy = readTool(tool('a', { inputSchema: { type: 'object', 'x-mcp-header': 7 } }), {
    era: 'legacy',
  });
  assert.deepEqual(legacy.kind === 'tool' ? legacy.tool.paramHeaders : undefined, []);
});

const caching: readonly (readonly [
  what: string,
  pages: readonly [object, object],
  ttlMs: number | undefined,
  scope: string,
])[] = [
  [
    'both pages public',
    [
      { ttlMs: 5, cacheScope: 'public' },
      { ttlMs: 7, cacheScope: 'public' },
    ],
    5,
    'public',
  ],
  [
    'one page private',
    [
      { ttlMs: 5, cacheScope: 'public' },
      { ttlMs: 3, cacheScope: 'private' },
    ],
    3,
    'private',
  ],
  ['nothing said', [{}, {}], undefined, 'private'],
  ['nonsense', [{ ttlMs: -1, cacheScope: 'shared' }, { ttlMs: '9' }], undefined, 'private'],
];

for (const [what, [first, second], ttlMs, scope] of caching) {
  test(`caching with ${what}: ttl ${ttlMs ?? 'unknown'}, ${scope} (R80)`, async () => {
    await using server = await FakeMcpServer.start({ era: 'modern' });
    pages(server, (cursor) =>
      cursor === undefined ? { tools: [], nextCursor: 'x', ...first } : { tools: [], ...second },
    );
    await using target = targetFor(server.url);
    const listing = await list(target, 'modern');
    assert.deepEqual([listing.ttlMs, listing.cacheScope], [ttlMs, scope]);
  });
}
