import assert from 'node:assert/strict';
import { test } from 'node:test';

import { answerServerRequest, cancelLegacy } from '#sidecar/upstream/answer-server-request.ts';
import { openLegacySession } from '#sidecar/upstream/legacy-session.ts';
import { listTools } from '#sidecar/upstream/list-tools.ts';
import { sendRequest } from '#sidecar/upstream/send-request.ts';
import { FakeClock } from '#test/support/fake-clock.ts';
import { FakeMcpServer, sseEvent } from '#test/support/fake-mcp-server.ts';

import { RecordingSink } from './recording-sink.ts';
import { targetFor } from './upstream-target.ts';

const OPTIONS = { protocolVersion: '2025-11-25', clientCapabilities: {} } as const;

const rows: readonly (readonly [message: Record<string, unknown>, answer: object])[] = [
  [{ id: 7, method: 'ping' }, { result: {} }],
  [{ id: 'a', method: 'elicitation/create', params: {} }, { error: { code: -32601 } }],
  [{ id: 0, method: 'sampling/createMessage' }, { error: { code: -32601 } }],
  [{ id: 1, method: 'roots/list' }, { error: { code: -32601 } }],
];

for (const [message, expected] of rows) {
  test(`a server that sends ${String(message['method'])} gets its answer in the session`, async () => {
    await using server = await FakeMcpServer.start({ era: 'legacy' });
    await using target = targetFor(server.url);
    const session = await openLegacySession(target, OPTIONS);
    await answerServerRequest(target, session, message);
    const posted = server.requests.at(-1);
    assert.equal(posted?.headers['mcp-session-id'], session.id);
    assert.equal(posted?.message?.id, message['id']);
    assert.partialDeepStrictEqual(posted?.message, expected);
  });
}

test('what is no request gets no answer', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  await using target = targetFor(server.url);
  const session = await openLegacySession(target, OPTIONS);
  await answerServerRequest(target, session, { method: 'notifications/message' });
  await answerServerRequest(target, session, { id: null, method: 'ping' });
  await answerServerRequest(target, session, { id: 1, result: {} });
  assert.equal(server.requests.length, 2);
});

test('a ping on the stream of a list is answered while the list goes on', async () => {
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  await using target = targetFor(server.url);
  const session = await openLegacySession(target, OPTIONS);
  server.intercept(({ message }) => {
    if (message?.method !== 'tools/list') return undefined;
    async function* chunks(): AsyncGenerator<string> {
      yield sseEvent({ jsonrpc: '2.0', id: 'p', method: 'ping' });
      await server.waitForRequest((request) => request.message?.id === 'p');
      yield sseEvent({ jsonrpc: '2.0', id: message?.id, result: { tools: [] } });
    }
    return { kind: 'stream', chunks: chunks() };
  });
  assert.deepEqual((await listTools(target, session.side, session)).tools, []);
});

test('a cancelled call is cancelled under the id that was sent, and the tool sees it', async () => {
  let seen: () => void = () => {};
  const cancelled = new Promise<void>((resolve) => {
    seen = resolve;
  });
  await using server = await FakeMcpServer.start({
    era: 'legacy',
    onCall: (call) =>
      new Promise((resolve) => {
        call.signal.addEventListener('abort', () => {
          seen();
          resolve({ content: [] });
        });
      }),
  });
  await using target = targetFor(server.url);
  const session = await openLegacySession(target, OPTIONS);
  const body = '{"jsonrpc":"2.0","id":"f-1","method":"tools/call","params":{"name":"echo"}}';
  const inFlight = sendRequest(
    target,
    {
      body,
      headers: session.headers,
      requestTimeoutMs: 30_000,
      streamReadTimeoutMs: 30_000,
      maxResponseBytes: 10_000,
    },
    new RecordingSink(),
  );
  await server.waitForRequest((request) => request.message?.id === 'f-1');
  await cancelLegacy(target, session, 'f-1');
  await cancelled;
  assert.equal(
    server.received('notifications/cancelled')[0]?.headers['mcp-session-id'],
    session.id,
  );
  inFlight.abort();
});

test('a cancellation that cannot be delivered fails silently, within five seconds', async () => {
  const clock = new FakeClock();
  await using server = await FakeMcpServer.start({ era: 'legacy' });
  await using target = targetFor(server.url, { clock });
  const session = await openLegacySession(target, OPTIONS);
  server.replyTo('notifications/cancelled', { kind: 'hang' });
  const done = cancelLegacy(target, session, 1);
  await server.waitForRequest((request) => request.message?.method === 'notifications/cancelled');
  clock.advance(5_000);
  await done;
});
