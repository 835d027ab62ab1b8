// A fake server and a target for it, with what the tests of sendRequest send.

import assert from 'node:assert/strict';

import { sendRequest } from '#sidecar/upstream/send-request.ts';
import type { OutgoingRequest, UpstreamTarget } from '#sidecar/upstream/upstream-types.ts';
import { FakeMcpServer } from '#test/support/fake-mcp-server.ts';
import type { FakeMcpServerOptions, FakeReply } from '#test/support/fake-mcp-server.ts';

import { RecordingSink } from './recording-sink.ts';
import { targetFor } from './upstream-target.ts';
import type { TargetOptions, TestTarget } from './upstream-target.ts';

export const BODY = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}';
export const RESULT = { jsonrpc: '2.0', id: 1, result: { content: [] } };
export const PROGRESS = {
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: 1, progress: 1 },
};

export function outgoing(more: Partial<OutgoingRequest> = {}): OutgoingRequest {
  return {
    body: BODY,
    headers: [],
    requestTimeoutMs: 30_000,
    streamReadTimeoutMs: 300_000,
    maxResponseBytes: 10_000,
    ...more,
  };
}

export async function answerOf(
  target: UpstreamTarget,
  more: Partial<OutgoingRequest> = {},
): Promise<RecordingSink> {
  const sink = new RecordingSink();
  sendRequest(target, outgoing(more), sink);
  assert.deepEqual(sink.heard, [], 'the sink is never called before sendRequest returns');
  await sink.ended;
  return sink;
}

export interface Pair extends AsyncDisposable {
  readonly server: FakeMcpServer;
  readonly target: TestTarget;
}

export async function pair(
  reply: FakeReply | undefined,
  options: TargetOptions = {},
  serverOptions: FakeMcpServerOptions = {},
): Promise<Pair> {
  const server = await FakeMcpServer.start({ era: 'legacy', sessions: false, ...serverOptions });
  if (reply !== undefined) server.intercept(() => reply);
  const target = targetFor(server.url, options);
  return {
    server,
    target,
    async [Symbol.asyncDispose]() {
      await target[Symbol.asyncDispose]();
      await server.close();
    },
  };
}
