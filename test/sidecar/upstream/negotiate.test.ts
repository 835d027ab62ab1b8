import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';

import type { ServerConfig } from '#core/config/sidecar-config.ts';
import { FairleadError } from '#core/errors.ts';
import type { ErrorCode } from '#core/errors.ts';
import { CLIENT_INFO } from '#core/version.ts';
import { SideNegotiator } from '#sidecar/upstream/negotiate.ts';
import type { Era } from '#sidecar/upstream/negotiate.ts';
import type { UpstreamSession } from '#sidecar/upstream/upstream-types.ts';
import { FakeClock } from '#test/support/fake-clock.ts';
import { FakeMcpServer, rpcError } from '#test/support/fake-mcp-server.ts';
import type { FakeEra, FakeReply } from '#test/support/fake-mcp-server.ts';

import { targetFor } from './upstream-target.ts';

type ConfigEra = ServerConfig['protocol']['era'];

const HOUR_MS = 3_600_000;

async function errorOf(side: unknown): Promise<FairleadError> {
  try {
    await side;
  } catch (error) {
    assert.ok(error instanceof FairleadError);
    return error;
  }
  return assert.fail('there is a verdict');
}

const matrix: readonly (readonly [
  config: ConfigEra,
  agent: Era,
  server: FakeEra,
  outcome: Era | ErrorCode,
  methods: readonly string[],
])[] = [
  ['Auto', 'modern', 'both', 'modern', ['server/discover']],
  ['Auto', 'modern', 'modern', 'modern', ['server/discover']],
  [
    'Auto',
    'modern',
    'legacy',
    'legacy',
    ['server/discover', 'initialize', 'notifications/initialized'],
  ],
  ['Auto', 'legacy', 'both', 'legacy', ['initialize', 'notifications/initialized']],
  ['Auto', 'legacy', 'legacy', 'legacy', ['initialize', 'notifications/initialized']],
  ['Auto', 'legacy', 'modern', 'modern', ['initialize', 'server/discover']],
  ['Modern', 'legacy', 'both', 'modern', ['server/discover']],
  ['Modern', 'modern', 'legacy', 'UPSTREAM_VERSION_UNSUPPORTED', ['server/discover']],
  ['Legacy', 'modern', 'both', 'legacy', ['initialize', 'notifications/initialized']],
  ['Legacy', 'modern', 'modern', 'UPSTREAM_REFUSED', ['initialize']],
];

for (const [config, agent, server, outcome, methods] of matrix) {
  test(`era ${config}, a ${agent} agent, a server of the era "${server}": ${outcome} by ${methods.join(', ')} (R60)`, async () => {
    await using fake = await FakeMcpServer.start({ era: server });
    await using target = targetFor(fake.url, { protocol: { era: config } });
    const side = Promise.resolve(
      new SideNegotiator(target, { offerSession: () => true }).sideFor(agent),
    );
    if (outcome === 'modern' || outcome === 'legacy') assert.equal((await side).era, outcome);
    else assert.equal((await errorOf(side)).code, outcome);
    assert.deepEqual(
      fake.requests.map((request) => request.message?.method),
      methods,
    );
  });
}

test('the discover request is a modern request of ours, without capabilities (R15) (R51) (R56) (R61)', async () => {
  await using fake = await FakeMcpServer.start({
    era: 'modern',
    capabilities: { tools: { a: 1 } },
  });
  await using target = targetFor(fake.url);
  const side = await new SideNegotiator(target).sideFor('modern');
  const [request] = fake.requests;
  assert.equal(request?.headers['mcp-protocol-version'], '2026-07-28');
  assert.equal(request?.headers['mcp-method'], 'server/discover');
  assert.deepEqual(request?.message?.params, {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': CLIENT_INFO,
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  });
  assert.deepEqual(side, {
    era: 'modern',
    protocolVersion: '2026-07-28',
    capabilities: { tools: { a: 1 } },
    serverInfo: fake.serverInfo,
  });
});

test('a known verdict is there at once, and asks nothing', async () => {
  await using fake = await FakeMcpServer.start();
  await using target = targetFor(fake.url);
  const negotiator = new SideNegotiator(target);
  const first = await negotiator.sideFor('modern');
  assert.equal(negotiator.sideFor('modern'), first);
  assert.equal(fake.requests.length, 1);
});

test('many callers at once make one negotiation', async () => {
  await using fake = await FakeMcpServer.start();
  await using target = targetFor(fake.url);
  const negotiator = new SideNegotiator(target, { offerSession: () => true });
  const askers = [1, 2, 3, 4].flatMap(() => [
    negotiator.sideFor('modern'),
    negotiator.sideFor('legacy'),
  ]);
  await Promise.all(askers.map((side) => Promise.resolve(side)));
  assert.equal(fake.received('server/discover').length, 1);
  assert.equal(fake.received('initialize').length, 1);
});

test("when the agent's era is missing, agents of the other era need no negotiation of their own", async () => {
  await using fake = await FakeMcpServer.start({ era: 'legacy' });
  await using target = targetFor(fake.url);
  const negotiator = new SideNegotiator(target, { offerSession: () => true });
  const side = await negotiator.sideFor('modern');
  assert.equal(negotiator.sideFor('legacy'), side);
});

test('the session of the handshake is offered, and ended when nobody wants it', async () => {
  await using fake = await FakeMcpServer.start({ era: 'legacy' });
  await using target = targetFor(fake.url);
  const offered: UpstreamSession[] = [];
  await new SideNegotiator(target, {
    offerSession: (session) => offered.push(session) > 0,
  }).sideFor('legacy');
  assert.deepEqual(
    offered.map((session) => session.id),
    [...fake.sessions],
  );
  await new SideNegotiator(target, { offerSession: () => false }).sideFor('legacy');
  await fake.waitForRequest((request) => request.httpMethod === 'DELETE');
  assert.equal(fake.requests.filter((request) => request.httpMethod === 'DELETE').length, 1);
});

/** What servers of the old era answer to a method that they do not know. */
const oldAnswers: readonly (readonly [what: string, reply: FakeReply])[] = [
  [
    '400 -32000 not initialized',
    {
      kind: 'reply',
      status: 400,
      body: rpcError(undefined, -32000, 'Bad Request: Server not initialized'),
    },
  ],
  [
    '400 -32000 unsupported version',
    {
      kind: 'reply',
      status: 400,
      body: rpcError(undefined, -32000, 'Bad Request: Unsupported protocol version: 2026-07-28'),
    },
  ],
  [
    '400 -32600 with a null id',
    { kind: 'reply', status: 400, body: rpcError(undefined, -32600, 'Invalid Request') },
  ],
  ['200 -32601', { kind: 'reply', body: rpcError(undefined, -32601, 'Method not found') }],
  [
    '404 -32601',
    { kind: 'reply', status: 404, body: rpcError(undefined, -32601, 'Method not found') },
  ],
  [
    '400 in plain text',
    {
      kind: 'reply',
      status: 400,
      headers: { 'content-type': 'text/plain' },
      body: 'Unsupported protocol version',
    },
  ],
  ['400 without a body', { kind: 'reply', status: 400 }],
  [
    '404 as HTML',
    { kind: 'reply', status: 404, headers: { 'content-type': 'text/html' }, body: '<html>' },
  ],
  ['405', { kind: 'reply', status: 405 }],
  ['406', { kind: 'reply', status: 406 }],
  ['422 of a web framework', { kind: 'reply', status: 422, body: { detail: [] } }],
  ['202', { kind: 'reply', status: 202 }],
  ['200 as HTML', { kind: 'reply', headers: { 'content-type': 'text/html' }, body: '<html>' }],
  ['200 with an empty result', { kind: 'reply', body: { jsonrpc: '2.0', id: null, result: {} } }],
  [
    'a list of old versions',
    {
      kind: 'reply',
      status: 400,
      body: rpcError(undefined, -32022, {
        message: 'Unsupported protocol version',
        data: { supported: ['2025-11-25'] },
      }),
    },
  ],
];

for (const [what, reply] of oldAnswers) {
  test(`server/discover answered with ${what} proves nothing: initialize follows`, async () => {
    await using fake = await FakeMcpServer.start({ era: 'legacy' });
    fake.replyTo('server/discover', reply);
    await using target = targetFor(fake.url);
    const side = await new SideNegotiator(target, { offerSession: () => true }).sideFor('modern');
    assert.equal(side.era, 'legacy');
  });
}

const outages: readonly (readonly [what: string, reply: FakeReply, code: ErrorCode])[] = [
  ['401', { kind: 'reply', status: 401 }, 'UPSTREAM_UNAUTHORIZED'],
  ['403', { kind: 'reply', status: 403 }, 'UPSTREAM_UNAUTHORIZED'],
  [
    '503',
    { kind: 'reply', status: 503, headers: { 'content-type': 'text/html' }, body: 'x' },
    'SERVER_UNAVAILABLE',
  ],
  ['429', { kind: 'reply', status: 429 }, 'SERVER_BUSY'],
  [
    'a redirect',
    { kind: 'reply', status: 308, headers: { location: 'https://login.example.com/' } },
    'UPSTREAM_REDIRECTED',
  ],
  ['a reset', { kind: 'reset' }, 'SERVER_UNAVAILABLE'],
];

for (const agent of ['modern', 'legacy'] as const) {
  for (const [what, reply, code] of outages) {
    test(`${what} during the negotiation for a ${agent} agent is no verdict: nothing else is tried, and the next call asks again`, async () => {
      await using fake = await FakeMcpServer.start();
      const heal = fake.intercept(() => reply);
      await using target = targetFor(fake.url);
      const negotiator = new SideNegotiator(target, { offerSession: () => true });
      assert.equal((await errorOf(negotiator.sideFor(agent))).code, code);
      assert.equal(fake.requests.length, 1);
      heal();
      assert.equal((await negotiator.sideFor(agent)).era, agent);
    });
  }
}

test('silence during the negotiation is no verdict', async () => {
  const clock = new FakeClock();
  await using fake = await FakeMcpServer.start();
  fake.intercept(() => ({ kind: 'hang' }));
  await using target = targetFor(fake.url, { clock });
  const failed = errorOf(new SideNegotiator(target).sideFor('modern'));
  await fake.waitForRequest(() => true);
  clock.advance(30_000);
  assert.equal((await failed).code, 'SERVER_UNAVAILABLE');
  assert.equal(fake.requests.length, 1);
});

test('a modern server without a common version is not taken for an old one, and both lists are shown (R61)', async () => {
  await using fake = await FakeMcpServer.start({ era: 'both', modernVersions: ['2027-01-01'] });
  await using target = targetFor(fake.url);
  const error = await errorOf(new SideNegotiator(target).sideFor('modern'));
  assert.equal(error.code, 'UPSTREAM_VERSION_UNSUPPORTED');
  assert.match(error.logDetail ?? '', /2026-07-28.*2027-01-01/);
  assert.equal(fake.received('initialize').length, 0);
});

test('a modern server that refuses server/discover by a modern error is not taken for an old one', async () => {
  await using fake = await FakeMcpServer.start();
  fake.replyTo('server/discover', {
    kind: 'reply',
    status: 400,
    body: rpcError(undefined, -32020, 'Header mismatch'),
  });
  await using target = targetFor(fake.url);
  assert.equal(
    (await errorOf(new SideNegotiator(target).sideFor('modern'))).code,
    'UPSTREAM_PROTOCOL_ERROR',
  );
  assert.equal(fake.received('initialize').length, 0);
});

test('a version of the other era in the answer to initialize is a failure, not a fallback (R62)', async () => {
  await using fake = await FakeMcpServer.start({ era: 'legacy', legacyVersions: ['2026-07-28'] });
  await using target = targetFor(fake.url);
  const error = await errorOf(new SideNegotiator(target).sideFor('legacy'));
  assert.equal(error.code, 'UPSTREAM_VERSION_UNSUPPORTED');
  assert.match(error.logDetail ?? '', /2025-11-25.*2026-07-28/);
});

test('only allowed versions are offered: without a modern one no discover is sent, without a legacy one no initialize', async () => {
  await using fake = await FakeMcpServer.start();
  await using old = targetFor(fake.url, { protocol: { versions: ['2025-06-18'] } });
  assert.equal(
    (await new SideNegotiator(old, { offerSession: () => true }).sideFor('modern')).protocolVersion,
    '2025-06-18',
  );
  await using recent = targetFor(fake.url, { protocol: { versions: ['2026-07-28'] } });
  assert.equal((await new SideNegotiator(recent).sideFor('legacy')).protocolVersion, '2026-07-28');
  assert.deepEqual(
    fake.requests.map((request) => request.message?.method),
    ['initialize', 'notifications/initialized', 'server/discover'],
  );
});

test('versions that contradict the configured era are a failure without a request', async () => {
  await using fake = await FakeMcpServer.start();
  await using target = targetFor(fake.url, {
    protocol: { era: 'Legacy', versions: ['2026-07-28'] },
  });
  assert.equal(
    (await errorOf(new SideNegotiator(target).sideFor('modern'))).code,
    'UPSTREAM_VERSION_UNSUPPORTED',
  );
  assert.equal(fake.requests.length, 0);
});

test("after an hour the verdict is renewed behind the caller's back", async () => {
  const clock = new FakeClock();
  await using fake = await FakeMcpServer.start();
  await using target = targetFor(fake.url, { clock });
  const negotiator = new SideNegotiator(target);
  const first = await negotiator.sideFor('modern');
  clock.advance(HOUR_MS - 1);
  assert.equal(negotiator.sideFor('modern'), first);
  await nextTurn();
  assert.equal(fake.requests.length, 1);
  clock.advance(1);
  assert.equal(negotiator.sideFor('modern'), first);
  await fake.waitForRequest(() => fake.requests.length === 2);
});

test('a verdict that the server contradicts is renewed at most once a minute, and a change is told', async () => {
  const clock = new FakeClock();
  const first = await FakeMcpServer.start({ era: 'legacy', sessions: false });
  await using target = targetFor(first.url, { clock });
  let changes = 0;
  const negotiator = new SideNegotiator(target, { onSideChanged: () => (changes += 1) });
  negotiator.doubt('modern');
  assert.equal(first.requests.length, 0, 'where there is no verdict there is nothing to doubt');
  const side = await negotiator.sideFor('modern');
  assert.equal(side.era, 'legacy');
  const asked = first.requests.length;
  negotiator.doubt('modern');
  await nextTurn();
  assert.equal(first.requests.length, asked, 'a fresh verdict stands');
  clock.advance(60_000);
  negotiator.doubt('modern');
  negotiator.doubt('modern');
  await first.waitForRequest(() => first.requests.length === 2 * asked);
  const same = negotiator.sideFor('modern');
  while (negotiator.sideFor('modern') === same) await nextTurn();
  const { port } = first;
  await first.close();
  await using second = await FakeMcpServer.start({ era: 'modern', port });
  clock.advance(60_000);
  negotiator.doubt('modern');
  const old = negotiator.sideFor('modern');
  assert.ok('era' in old && old.era === 'legacy', 'calls go on with the verdict that there is');
  await second.waitForRequest((request) => request.message?.method === 'server/discover');
  while (changes === 0) await nextTurn();
  assert.equal((await negotiator.sideFor('modern')).era, 'modern');
  assert.equal(changes, 1);
});

test('a failed renewal keeps the verdict and waits a minute', async () => {
  const clock = new FakeClock();
  await using fake = await FakeMcpServer.start();
  const lines: string[] = [];
  await using target = targetFor(fake.url, { clock, onLine: (line) => lines.push(line) });
  const negotiator = new SideNegotiator(target);
  const first = await negotiator.sideFor('modern');
  fake.intercept(() => ({ kind: 'reply', status: 503 }));
  clock.advance(HOUR_MS);
  assert.equal(negotiator.sideFor('modern'), first);
  while (lines.length === 0) await nextTurn();
  assert.equal(negotiator.sideFor('modern'), first);
  await nextTurn();
  assert.equal(fake.requests.length, 2);
  clock.advance(60_000);
  assert.equal(negotiator.sideFor('modern'), first);
  await fake.waitForRequest(() => fake.requests.length === 3);
});

test('a forgotten verdict is found anew, and a negotiation that was under way leaves no trace', async () => {
  await using fake = await FakeMcpServer.start();
  await using target = targetFor(fake.url);
  const negotiator = new SideNegotiator(target);
  const early = negotiator.sideFor('modern');
  negotiator.forget();
  await early;
  assert.ok(negotiator.sideFor('modern') instanceof Promise);
  await negotiator.sideFor('modern');
  assert.equal(fake.received('server/discover').length, 2);
});
