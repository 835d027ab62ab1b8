import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FakeMcpServer, rpcError, sseEvent } from '#test/support/fake-mcp-server.ts';
import type { FakeReply } from '#test/support/fake-mcp-server.ts';

import { PROGRESS, answerOf, pair } from './request-pair.ts';
import { targetFor } from './upstream-target.ts';

const failures: readonly (readonly [
  what: string,
  reply: FakeReply,
  expected: {
    readonly code: string;
    readonly sent: string;
    readonly status?: number;
    readonly retryAfterMs?: number;
    readonly location?: string;
  },
])[] = [
  [
    '202 to a request',
    { kind: 'reply', status: 202 },
    { code: 'UPSTREAM_PROTOCOL_ERROR', sent: 'unknown', status: 202 },
  ],
  [
    'an HTML page',
    { kind: 'reply', headers: { 'content-type': 'text/html' }, body: '<html>' },
    { code: 'UPSTREAM_PROTOCOL_ERROR', sent: 'unknown', status: 200 },
  ],
  [
    'no content type',
    { kind: 'reply', body: '{}' },
    { code: 'UPSTREAM_PROTOCOL_ERROR', sent: 'unknown', status: 200 },
  ],
  [
    'an empty JSON body',
    { kind: 'reply', headers: { 'content-type': 'application/json' }, body: '' },
    { code: 'UPSTREAM_PROTOCOL_ERROR', sent: 'unknown', status: 200 },
  ],
  [
    'a compressed body',
    {
      kind: 'reply',
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: 'x',
    },
    { code: 'UPSTREAM_PROTOCOL_ERROR', sent: 'unknown', status: 200 },
  ],
  [
    '401',
    { kind: 'reply', status: 401, headers: { 'www-authenticate': 'Bearer' } },
    { code: 'UPSTREAM_UNAUTHORIZED', sent: 'no', status: 401 },
  ],
  [
    '429',
    { kind: 'reply', status: 429, headers: { 'retry-after': '3' } },
    { code: 'SERVER_BUSY', sent: 'no', status: 429, retryAfterMs: 3_000 },
  ],
  [
    '503 as HTML',
    {
      kind: 'reply',
      status: 503,
      headers: { 'content-type': 'text/html', 'retry-after': '1' },
      body: 'x',
    },
    { code: 'OUTCOME_UNKNOWN', sent: 'unknown', status: 503, retryAfterMs: 1_000 },
  ],
  [
    '307 to itself',
    { kind: 'reply', status: 307, headers: { location: '/mcp' } },
    { code: 'UPSTREAM_REDIRECTED', sent: 'no', status: 307, location: '/mcp' },
  ],
  [
    '302 to another host',
    { kind: 'reply', status: 302, headers: { location: 'http://169.254.169.254/' } },
    { code: 'UPSTREAM_REDIRECTED', sent: 'no', status: 302, location: 'http://169.254.169.254/' },
  ],
  [
    '429 that says twice when to come back',
    { kind: 'reply', status: 429, headers: { 'retry-after': ['3', '4'] } },
    { code: 'SERVER_BUSY', sent: 'no', status: 429 },
  ],
  [
    '302 to two places',
    { kind: 'reply', status: 302, headers: { location: ['/a', '/b'] } },
    { code: 'UPSTREAM_REDIRECTED', sent: 'no', status: 302 },
  ],
  [
    'a body of two types',
    { kind: 'reply', headers: { 'content-type': ['application/json', 'text/html'] }, body: '{}' },
    { code: 'UPSTREAM_PROTOCOL_ERROR', sent: 'unknown', status: 200 },
  ],
  [
    'a JSON body over the cap',
    { kind: 'reply', body: { a: 'x'.repeat(10_001) } },
    { code: 'RESPONSE_TOO_LARGE', sent: 'unknown', status: 200 },
  ],
  [
    'an endless JSON body',
    {
      kind: 'stream',
      headers: { 'content-type': 'application/json' },
      chunks: endless('[1,'),
      end: 'hold',
    },
    { code: 'RESPONSE_TOO_LARGE', sent: 'unknown', status: 200 },
  ],
  [
    'an event over the cap',
    { kind: 'stream', chunks: endless('data: x\n'), end: 'hold' },
    { code: 'RESPONSE_TOO_LARGE', sent: 'unknown', status: 200 },
  ],
  [
    'an endless error page',
    {
      kind: 'stream',
      status: 500,
      headers: { 'content-type': 'text/html' },
      chunks: endless('x'.repeat(1_000)),
      end: 'hold',
    },
    { code: 'OUTCOME_UNKNOWN', sent: 'unknown', status: 500 },
  ],
  ['a reset before the answer', { kind: 'reset' }, { code: 'OUTCOME_UNKNOWN', sent: 'unknown' }],
  [
    'a reset within a JSON body',
    {
      kind: 'stream',
      headers: { 'content-type': 'application/json', 'content-length': '100' },
      chunks: ['{"a":'],
      end: 'reset',
    },
    { code: 'OUTCOME_UNKNOWN', sent: 'unknown', status: 200 },
  ],
  [
    'a chunked JSON body that is cut off',
    {
      kind: 'stream',
      headers: { 'content-type': 'application/json' },
      chunks: ['{"a":'],
      end: 'reset',
    },
    { code: 'OUTCOME_UNKNOWN', sent: 'unknown', status: 200 },
  ],
];

function* endless(text: string): Generator<string> {
  for (;;) yield text;
}

for (const [what, reply, expected] of failures) {
  test(`${what} is ${expected.code}, sent: ${expected.sent}`, async () => {
    await using both = await pair(reply);
    const sink = await answerOf(both.target);
    const { detail: _, ...failure } = sink.failure;
    assert.deepEqual(failure, expected);
    assert.equal(both.server.requests.length, 1, 'nothing is followed or sent again');
  });
}

test('a stream that breaks after it began is a failure of unknown outcome', async () => {
  await using both = await pair({ kind: 'stream', chunks: [sseEvent(PROGRESS)], end: 'reset' });
  const sink = await answerOf(both.target);
  assert.deepEqual(sink.messages, [JSON.stringify(PROGRESS)]);
  assert.equal(sink.failure.code, 'OUTCOME_UNKNOWN');
  assert.equal(sink.failure.sent, 'unknown');
});

test('a 4xx with a JSON-RPC error is an answer', async () => {
  const error = rpcError(1, -32602, 'bad');
  await using both = await pair({ kind: 'reply', status: 400, body: error });
  assert.deepEqual((await answerOf(both.target)).heard, [
    { kind: 'json', status: 400, body: JSON.stringify(error) },
  ]);
});

test('404 means a lost session when a session was sent, and a refusal otherwise', async () => {
  await using both = await pair({
    kind: 'reply',
    status: 404,
    body: rpcError(undefined, -32001, 'Session not found'),
  });
  assert.equal(
    (await answerOf(both.target, { headers: ['mcp-session-id', 's'] })).failure.code,
    'SESSION_LOST',
  );
  assert.equal((await answerOf(both.target)).last?.kind, 'json');
});

test('a server that cannot be reached got nothing', async () => {
  const server = await FakeMcpServer.start();
  const { url } = server;
  await server.close();
  await using target = targetFor(url);
  const { failure } = await answerOf(target);
  assert.equal(failure.code, 'SERVER_UNAVAILABLE');
  assert.equal(failure.sent, 'no');
});

test('an address that is not allowed got nothing', async () => {
  await using server = await FakeMcpServer.start();
  await using target = targetFor(server.url, { allowedHosts: ['mcp.example.com'] });
  const { failure } = await answerOf(target);
  assert.equal(failure.code, 'EGRESS_DENIED');
  assert.equal(failure.sent, 'no');
  assert.equal(server.connectionCount, 0);
});

test('a header that HTTP does not allow is refused, and nothing is sent', async () => {
  await using both = await pair(undefined);
  const { failure } = await answerOf(both.target, { headers: ['mcp-session-id', 'a\r\nx: y'] });
  assert.equal(failure.sent, 'no');
  assert.equal(both.server.requests.length, 0);
});

test('a status counts also when its body breaks off', async () => {
  await using both = await pair({
    kind: 'stream',
    status: 429,
    headers: { 'content-type': 'application/json', 'retry-after': '2' },
    chunks: ['{"error":'],
    end: 'reset',
  });
  assert.equal((await answerOf(both.target)).failure.code, 'SERVER_BUSY');
});

test('what a server says of its body is quoted in a length that no log line notices', async () => {
  for (const header of ['content-type', 'content-encoding']) {
    const value = ['x'.repeat(2_000), 'y'.repeat(2_000)];
    await using both = await pair({ kind: 'reply', headers: { [header]: value }, body: '{}' });
    const { detail } = (await answerOf(both.target)).failure;
    assert.match(detail, /"x{64}"/);
    assert.ok(detail.length < 200, detail);
  }
});
