import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FairleadError } from '#core/errors.ts';
import type { ErrorCode } from '#core/errors.ts';
import { CLIENT_INFO } from '#core/version.ts';
import { openLegacySession } from '#sidecar/upstream/legacy-session.ts';
import type { UpstreamTarget } from '#sidecar/upstream/upstream-types.ts';
import { FakeClock } from '#test/support/fake-clock.ts';
import { FakeMcpServer, rpcError } from '#test/support/fake-mcp-server.ts';
import type { FakeReply } from '#test/support/fake-mcp-server.ts';

import { targetFor } from './upstream-target.ts';

function open(target: UpstreamTarget) {
  return openLegacySession(target, { protocolVersion: '2025-11-25', clientCapabilities: {} });
}

async function codeOf(opening: Promise<unknown>): Promise<FairleadError> {
  return opening.then(
    () => assert.fail('the session was opened'),
    (error: unknown) => {
      assert.ok(error instanceof FairleadError);
      return error;
    },
  );
}

for (const answers of ['json', 'sse'] as const) {
  test(`a session is opened with initialize and initialized, answered as ${answers}`, async () => {
    await using server = await FakeMcpServer.start({
      era: 'legacy',
      answers,
      capabilities: { tools: { x: 1 } },
    });
    await using target = targetFor(server.url);
    const session = await open(target);
    const [initialize, initialized] = server.requests;
    assert.deepEqual(initialize?.message?.params, {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: CLIENT_INFO,
    });
    assert.equal(initialize?.headers['mcp-session-id'], undefined);
    assert.equal(initialized?.body, '{"jsonrpc":"2.0","method":"notifications/initialized"}');
    assert.equal(initialized?.headers['mcp-session-id'], session.id);
    assert.equal(initialized?.headers['mcp-protocol-version'], '2025-11-25');
    assert.deepEqual(session.side, {
      era: 'legacy',
      protocolVersion: '2025-11-25',
      capabilities: { tools: { x: 1 } },
      serverInfo: server.serverInfo,
    });
    assert.deepEqual(session.headers, [
      'mcp-session-id',
      session.id,
      'mcp-protocol-version',
      '2025-11-25',
    ]);
  });
}

test('an older version that is allowed is taken', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy', legacyVersions: ['2025-03-26'] });
  await using target = targetFor(server.url);
  assert.equal((await open(target)).side.protocolVersion, '2025-03-26');
});

test('a server without sessions gets the version header and no DELETE', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy', sessions: false });
  await using target = targetFor(server.url);
  const session = await open(target);
  assert.equal(session.id, undefined);
  assert.deepEqual(session.headers, ['mcp-protocol-version', '2025-11-25']);
  await session.close();
  assert.equal(server.requests.length, 2);
});

for (const version of ['2026-07-28', '2024-11-05', 'nonsense']) {
  test(`initialize answered with ${version} fails, shows both versions, and ends the session (R62)`, async () => {
    await using server = await FakeMcpServer.start({ era: 'legacy', legacyVersions: [version] });
    await using target = targetFor(server.url);
    const error = await codeOf(open(target));
    assert.equal(error.code, 'UPSTREAM_VERSION_UNSUPPORTED');
    assert.match(error.logDetail ?? '', /2025-11-25/);
    assert.ok(error.logDetail?.includes(version));
    assert.equal(server.sessions.size, 0);
    assert.deepEqual(server.received('notifications/initialized'), []);
  });
}

test('a version that is spoken but not allowed for this server fails (R62)', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy', legacyVersions: ['2025-03-26'] });
  await using target = targetFor(server.url, { protocol: { versions: ['2025-11-25'] } });
  assert.equal((await codeOf(open(target))).code, 'UPSTREAM_VERSION_UNSUPPORTED');
});

const initializeReplies: readonly (readonly [what: string, reply: FakeReply, code: ErrorCode])[] = [
  [
    'a JSON-RPC error',
    {
      kind: 'reply',
      status: 400,
      body: rpcError(undefined, -32022, 'Unsupported protocol version'),
    },
    'UPSTREAM_REFUSED',
  ],
  ['401', { kind: 'reply', status: 401 }, 'UPSTREAM_UNAUTHORIZED'],
  ['403', { kind: 'reply', status: 403 }, 'UPSTREAM_UNAUTHORIZED'],
  [
    '404 as HTML',
    { kind: 'reply', status: 404, headers: { 'content-type': 'text/html' }, body: 'x' },
    'UPSTREAM_REFUSED',
  ],
  ['503', { kind: 'reply', status: 503 }, 'SERVER_UNAVAILABLE'],
  ['429', { kind: 'reply', status: 429 }, 'SERVER_BUSY'],
  ['307', { kind: 'reply', status: 307, headers: { location: '/mcp/' } }, 'UPSTREAM_REDIRECTED'],
  [
    'a result that is no object',
    { kind: 'reply', body: { jsonrpc: '2.0', id: null, result: [] } },
    'UPSTREAM_PROTOCOL_ERROR',
  ],
  ['a reset', { kind: 'reset' }, 'SERVER_UNAVAILABLE'],
  [
    'a stream that ends without an answer',
    { kind: 'stream', chunks: [': x\n\n'] },
    'SERVER_UNAVAILABLE',
  ],
];

for (const [what, reply, code] of initializeReplies) {
  test(`initialize answered with ${what} is ${code}`, async () => {
    await using server = await FakeMcpServer.start({ era: 'legacy' });
    server.replyTo('initialize', reply);
    await using target = targetFor(server.url);
    assert.equal((await codeOf(open(target))).code, code);
  });
}

test('a session id with characters that no header may have is refused', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  server.intercept(({ message }) => {
    if (message?.method !== 'initialize') return undefined;
    const body = {
      jsonrpc: '2.0',
      id: message.id,
      result: { protocolVersion: '2025-11-25', capabilities: {} },
    };
    return { kind: 'reply', headers: { 'mcp-session-id': 'a b' }, body };
  });
  await using target = targetFor(server.url);
  assert.equal((await codeOf(open(target))).code, 'UPSTREAM_PROTOCOL_ERROR');
});

test('a refused notifications/initialized fails the opening and ends the session', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  server.replyTo('notifications/initialized', { kind: 'reply', status: 500 });
  await using target = targetFor(server.url);
  assert.equal((await codeOf(open(target))).code, 'SERVER_UNAVAILABLE');
  assert.equal(server.sessions.size, 0);
});

test('initialize has one absolute deadline, whatever trickles in', async () => {
  const clock = new FakeClock();
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  server.replyTo('initialize', { kind: 'stream', chunks: [': a\n\n', ': b\n\n'], end: 'hold' });
  await using target = targetFor(server.url, { clock });
  const failed = codeOf(open(target));
  await server.waitForRequest(() => true);
  clock.advance(30_000);
  assert.equal((await failed).code, 'SERVER_UNAVAILABLE');
  await server.waitForDisconnect();
});

const deletes: readonly (readonly [what: string, reply: FakeReply | undefined])[] = [
  ['200', undefined],
  ['405', { kind: 'reply', status: 405 }],
  ['404', { kind: 'reply', status: 404 }],
  ['a reset', { kind: 'reset' }],
];

for (const [what, reply] of deletes) {
  test(`closing sends one DELETE with the session, and ${what} is fine (R63)`, async () => {
    await using server = await FakeMcpServer.start({ era: 'legacy' });
    await using target = targetFor(server.url);
    const session = await open(target);
    if (reply !== undefined)
      server.intercept((request) => (request.httpMethod === 'DELETE' ? reply : undefined));
    await Promise.all([session.close(), session.close()]);
    const deleted = server.requests.filter((request) => request.httpMethod === 'DELETE');
    assert.equal(deleted.length, 1);
    assert.equal(deleted[0]?.headers['mcp-session-id'], session.id);
    assert.equal(deleted[0]?.headers['mcp-protocol-version'], '2025-11-25');
    assert.equal(deleted[0]?.body, '');
  });
}

test('closing waits a second at most', async () => {
  const clock = new FakeClock();
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  await using target = targetFor(server.url, { clock });
  const session = await open(target);
  server.intercept((request) => (request.httpMethod === 'DELETE' ? { kind: 'hang' } : undefined));
  const closed = session.close();
  await server.waitForRequest((request) => request.httpMethod === 'DELETE');
  clock.advance(1_000);
  await closed;
});

test('with terminateOnClose off nothing is sent', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  await using target = targetFor(server.url, { limits: { terminateOnClose: false } });
  const session = await open(target);
  await session.close();
  assert.equal(server.sessions.size, 1);
});

test('no session id is ever logged', async () => {
  const lines: string[] = [];
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  await using target = targetFor(server.url, { onLine: (line) => lines.push(line) });
  const session = await open(target);
  server.intercept((request) => (request.httpMethod === 'DELETE' ? { kind: 'reset' } : undefined));
  await session.close();
  assert.equal(lines.length, 1);
  assert.ok(!lines.join('').includes(session.id ?? 'no id'));
});
