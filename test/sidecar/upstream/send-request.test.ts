import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';

import { USER_AGENT } from '#core/version.ts';
import { sendRequest } from '#sidecar/upstream/send-request.ts';
import { FakeClock } from '#test/support/fake-clock.ts';
import { sseEvent } from '#test/support/fake-mcp-server.ts';

import { RecordingSink } from './recording-sink.ts';
import { BODY, PROGRESS, RESULT, answerOf, outgoing, pair } from './request-pair.ts';

test('a request carries exactly our headers, no Origin and no accept-encoding (R15) (R46)', async () => {
  await using both = await pair(undefined);
  const sink = await answerOf(both.target, {
    headers: ['mcp-session-id', 's', 'Mcp-Param-A', 'x'],
  });
  assert.equal(sink.last?.kind, 'json');
  const { rawHeaders, body, path } = both.server.requests[0] ?? assert.fail();
  const names = rawHeaders
    .filter((_value, index) => index % 2 === 0)
    .map((name) => name.toLowerCase());
  assert.deepEqual(names.sort(), [
    'accept',
    'connection',
    'content-length',
    'content-type',
    'host',
    'mcp-param-a',
    'mcp-session-id',
    'user-agent',
  ]);
  const { headers } = both.server.requests[0] ?? assert.fail();
  assert.equal(headers['accept'], 'application/json, text/event-stream');
  assert.equal(headers['content-type'], 'application/json');
  assert.equal(headers['user-agent'], USER_AGENT);
  assert.equal(body, BODY);
  assert.equal(path, '/mcp');
});

test('a JSON answer arrives in one piece, however it was cut', async () => {
  const text = JSON.stringify({ ...RESULT, result: { text: '世界'.repeat(500) } });
  const bytes = Buffer.from(text);
  await using both = await pair({
    kind: 'stream',
    headers: { 'content-type': 'application/json; charset=utf-8' },
    chunks: [bytes.subarray(0, 101), bytes.subarray(101)],
  });
  const sink = await answerOf(both.target);
  assert.deepEqual(sink.heard, [{ kind: 'json', status: 200, body: text }]);
});

test('a stream arrives message by message, then ends (R47) (R48)', async () => {
  await using both = await pair({
    kind: 'stream',
    chunks: [
      ': hello\n\n',
      sseEvent(PROGRESS).slice(0, 30),
      sseEvent(PROGRESS).slice(30),
      sseEvent(RESULT),
    ],
  });
  const sink = await answerOf(both.target);
  assert.deepEqual(
    sink.heard.map((heard) => heard.kind),
    ['stream-start', 'message', 'message', 'stream-end'],
  );
  assert.deepEqual(sink.messages, [JSON.stringify(PROGRESS), JSON.stringify(RESULT)]);
});

test('a socket is used again after an error answer', async () => {
  await using both = await pair({
    kind: 'reply',
    status: 503,
    headers: { 'content-type': 'text/html' },
    body: '<html>',
  });
  for (let round = 0; round < 3; round++) {
    await answerOf(both.target);
    // undici offers the socket again in the next turn.
    await nextTurn();
  }
  assert.equal(both.server.connectionCount, 1);
});

test('what a sink throws is logged, without its message', async () => {
  const lines: string[] = [];
  await using both = await pair(undefined, { onLine: (line) => lines.push(line) });
  const sink = new RecordingSink();
  sink.onEach = () => {
    throw new TypeError('a bug in the sink with a secret');
  };
  sendRequest(both.target, outgoing(), sink);
  await both.server.waitForRequest(() => true);
  while (lines.length === 0) await nextTurn();
  assert.match(lines.join(''), /an answer could not be handled/);
  assert.doesNotMatch(lines.join(''), /secret/);
});

test('listeners, timers and sockets are back to none after a thousand exchanges', async () => {
  const clock = new FakeClock();
  await using both = await pair(undefined, { clock, connections: 4 }, { answers: 'sse' });
  for (let round = 0; round < 250; round++)
    await Promise.all([1, 2, 3, 4].map(() => answerOf(both.target)));
  assert.equal(clock.pendingTimers, 0);
  assert.ok(both.server.connectionCount <= 4);
  assert.equal(both.target.pool.stats().running, 0);
});
