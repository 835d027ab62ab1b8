// Unmodified SDK clients of both generations against the agent API: what they make of our answers
// is what counts.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { FairleadError } from '#core/errors.ts';
import { answerError, answerResult, startStream } from '#sidecar/agent-api/answers.ts';
import type { AgentExchange } from '#sidecar/agent-api/exchange.ts';
import { AgentApiFixture } from '#test/support/agent-api-fixture.ts';
import { answerEcho } from '#test/support/relay-double.ts';

const INFO = { name: 'test-client', version: '1.0.0' };

/** Two progress events when they were asked for, then the answer. */
function answerWithProgress(exchange: AgentExchange): void {
  const meta = exchange.request.params?._meta as
    | { readonly progressToken?: string | number }
    | undefined;
  const stream = startStream(exchange);
  for (const progress of [1, 2]) {
    const params = { progressToken: meta?.progressToken, progress, total: 2 };
    stream.send(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params }));
  }
  answerEcho(exchange);
}

describe('the SDK v1 client', () => {
  it('initializes, lists, calls, sees progress, tool errors and unknown tools, and ends its session', async () => {
    await using fixture = await AgentApiFixture.open();
    const client = new ClientV1(INFO);
    const transport = new TransportV1(new URL(fixture.url));
    await client.connect(transport as never);
    assert.equal(client.getServerVersion()?.name, 'fairlead');
    assert.deepEqual(
      (await client.listTools()).tools.map(({ name }) => name),
      ['desk__echo'],
    );
    const params = { name: 'desk__echo', arguments: { text: 'hi' } };
    assert.deepEqual((await client.callTool(params)).content, [{ type: 'text', text: 'hi' }]);
    fixture.relay.onCall = answerWithProgress;
    const seen: number[] = [];
    const result = await client.callTool(params, undefined, {
      onprogress: ({ progress }) => seen.push(progress),
    });
    assert.deepEqual([seen, result.content], [[1, 2], [{ type: 'text', text: 'hi' }]]);
    fixture.relay.onCall = (exchange) => answerError(exchange, new FairleadError('SERVER_BUSY'));
    assert.equal((await client.callTool(params)).isError, true);
    fixture.relay.onCall = (exchange) => answerError(exchange, new FairleadError('UNKNOWN_TOOL'));
    await assert.rejects(client.callTool(params), { code: -32602 });
    await client.ping();
    await transport.terminateSession();
    await client.close();
    assert.equal(fixture.sessions.size, 0);
  });

  it('cancels a call, which reaches the relay, and goes on', async () => {
    await using fixture = await AgentApiFixture.open();
    const client = new ClientV1(INFO);
    await client.connect(new TransportV1(new URL(fixture.url)) as never);
    const cancelled = Promise.withResolvers<void>();
    const stop = new AbortController();
    fixture.relay.onCall = (exchange) => {
      exchange.onCancelled(cancelled.resolve);
      stop.abort();
    };
    await assert.rejects(client.callTool({ name: 'a' }, undefined, { signal: stop.signal }));
    await cancelled.promise;
    fixture.relay.onCall = answerEcho;
    assert.equal((await client.callTool({ name: 'a' })).isError, undefined);
    await client.close();
  });
});

describe('the SDK v2 client', () => {
  for (const mode of ['legacy', 'auto', 'modern'] as const) {
    it(`negotiating ${mode} lists, calls and sees progress`, async () => {
      await using fixture = await AgentApiFixture.open();
      const versionNegotiation = mode === 'modern' ? { mode: { pin: '2026-07-28' } } : { mode };
      const client = new ClientV2(INFO, { versionNegotiation } as never);
      await client.connect(new TransportV2(new URL(fixture.url)));
      assert.equal(client.getServerVersion()?.name, 'fairlead');
      assert.deepEqual(
        (await client.listTools()).tools.map(({ name }) => name),
        ['desk__echo'],
      );
      const params = { name: 'desk__echo', arguments: { text: 'hi' } };
      const plain = await client.callTool(params);
      assert.deepEqual('content' in plain && plain.content, [{ type: 'text', text: 'hi' }]);
      fixture.relay.onCall = answerWithProgress;
      const seen: number[] = [];
      await client.callTool(params, { onprogress: ({ progress }) => void seen.push(progress) });
      assert.deepEqual(seen, [1, 2]);
      fixture.relay.onCall = (exchange) =>
        answerError(exchange, new FairleadError('SERVER_UNAVAILABLE'));
      const failed = await client.callTool(params);
      assert.equal('isError' in failed && failed.isError, true);
      await client.close();
      const era = mode === 'legacy' ? 'legacy' : 'modern';
      assert.ok(fixture.relay.exchanges.length >= 4);
      assert.deepEqual(
        new Set(fixture.relay.exchanges.map((exchange) => exchange.era)),
        new Set([era]),
      );
    });
  }

  it('calls tools whose names do not fit into a header', async () => {
    await using fixture = await AgentApiFixture.open();
    const name = 'desk__Grüße 世界';
    fixture.relay.onList = (exchange) =>
      answerResult(exchange, {
        tools: [{ name, inputSchema: { type: 'object' } }],
        ttlMs: 0,
        cacheScope: 'private',
      });
    const client = new ClientV2(INFO, {
      versionNegotiation: { mode: { pin: '2026-07-28' } },
    } as never);
    await client.connect(new TransportV2(new URL(fixture.url)));
    await client.listTools();
    const result = await client.callTool({ name, arguments: { text: 'hi' } });
    assert.deepEqual('content' in result && result.content, [{ type: 'text', text: 'hi' }]);
    assert.equal(fixture.relay.exchanges.at(-1)?.request.params?.name, name);
    await client.close();
  });
});
