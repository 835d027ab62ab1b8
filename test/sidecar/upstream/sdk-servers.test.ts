// The whole way of a call against servers that were not written here, on each of the four legs.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FairleadError } from '#core/errors.ts';
import { cancelLegacy } from '#sidecar/upstream/answer-server-request.ts';
import { bridgeMessage } from '#sidecar/upstream/bridge-answers.ts';
import { presentTool, wrapsOutput } from '#sidecar/upstream/bridge-tools.ts';
import { buildCallRequest } from '#sidecar/upstream/call-request.ts';
import type { CallRequest } from '#sidecar/upstream/call-request.ts';
import { openLegacySession } from '#sidecar/upstream/legacy-session.ts';
import { listTools } from '#sidecar/upstream/list-tools.ts';
import { SideNegotiator } from '#sidecar/upstream/negotiate.ts';
import { sendRequest } from '#sidecar/upstream/send-request.ts';
import { readServerMessage } from '#sidecar/upstream/server-message.ts';
import type { RemoteTool, Side, UpstreamSession } from '#sidecar/upstream/upstream-types.ts';

import { RecordingSink } from './recording-sink.ts';
import { startV1Server, startV2Server } from './sdk-servers.ts';
import { targetFor } from './upstream-target.ts';
import type { TestTarget } from './upstream-target.ts';

const MODERN_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'agent', version: '1' },
};

/** What one agent of `era` has on the way to one server. */
class Leg {
  readonly target: TestTarget;
  readonly era: Side['era'];
  readonly side: Side;
  readonly session: UpstreamSession | undefined;
  readonly tools: readonly RemoteTool[];

  private constructor(
    target: TestTarget,
    era: Side['era'],
    found: Pick<Leg, 'side' | 'session' | 'tools'>,
  ) {
    this.target = target;
    this.era = era;
    this.side = found.side;
    this.session = found.session;
    this.tools = found.tools;
  }

  static async open(target: TestTarget, era: Side['era']): Promise<Leg> {
    const sessions: UpstreamSession[] = [];
    const side = await new SideNegotiator(target, {
      offerSession: (session) => sessions.push(session) > 0,
    }).sideFor(era);
    const [session] = sessions;
    const { tools } = await listTools(target, side, session);
    return new Leg(target, era, { side, session, tools });
  }

  tool(name: string): RemoteTool {
    return (
      this.tools.find((tool) => tool.name === name) ??
      assert.fail(`no tool ${name} in ${this.tools.map((tool) => tool.name).join(', ')}`)
    );
  }

  build(name: string, args: object): CallRequest {
    const meta = { ...(this.era === 'modern' ? MODERN_META : {}), progressToken: 'tok' };
    const body = Buffer.from(
      JSON.stringify({
        jsonrpc: '2.0',
        id: 42,
        method: 'tools/call',
        params: { name: `x__${name}`, arguments: args, _meta: meta },
      }),
    );
    const upstreamId = this.era === 'modern' && this.side.era === 'legacy' ? 'f-1' : undefined;
    return buildCallRequest(
      { era: this.era, body, arguments: args, headers: {} },
      {
        tool: this.tool(name),
        side: this.side,
        session: this.session,
        limits: this.target.server.limits,
        upstreamId,
      },
    );
  }

  /** All messages as the agent sees them, the final response last. */
  async call(
    name: string,
    args: object,
  ): Promise<
    {
      readonly id?: unknown;
      readonly method?: string;
      readonly params?: object;
      readonly result?: Record<string, unknown>;
    }[]
  > {
    const request = this.build(name, args);
    const sink = new RecordingSink();
    sendRequest(this.target, request.outgoing, sink);
    await sink.ended;
    const texts = sink.last?.kind === 'json' ? [sink.last.body] : sink.messages;
    return texts.map((text) => {
      const bridged = bridgeMessage(readServerMessage(text), {
        serverEra: this.side.era,
        agentEra: this.era,
        replaced: request.replaced,
        logLevel: undefined,
        wrapsOutput: wrapsOutput(this.tool(name).definition),
        serverInfo: this.side.serverInfo,
      });
      assert.ok(
        bridged.kind === 'response' || bridged.kind === 'notification',
        `${bridged.kind}: ${text}`,
      );
      return JSON.parse(bridged.text) as { result?: Record<string, unknown> };
    });
  }
}

const servers = [
  [
    'an SDK v1 server that answers as streams',
    'legacy',
    () => startV1Server({ enableJsonResponse: false }),
  ],
  [
    'an SDK v1 server that answers as JSON',
    'legacy',
    () => startV1Server({ enableJsonResponse: true }),
  ],
  ['an SDK v2 server without the legacy era', 'modern', () => startV2Server({ legacy: 'reject' })],
  ['an SDK v2 server of both eras', 'both', () => startV2Server({ legacy: 'stateless' })],
] as const;

for (const [what, serves, start] of servers) {
  for (const era of ['legacy', 'modern'] as const) {
    test(`${what}: a ${era} agent lists, calls and sees progress (R60)`, async () => {
      await using server = await start();
      await using target = targetFor(server.url);
      const leg = await Leg.open(target, era);
      assert.equal(leg.side.era, serves === 'both' ? era : serves);
      const messages = await leg.call('add', { a: 20, b: 22 });
      assert.partialDeepStrictEqual(messages.at(-1), {
        id: 42,
        result: { structuredContent: { sum: 42 }, content: [{ type: 'text', text: '42' }] },
      });
      assert.equal(
        messages.at(-1)?.result?.['resultType'],
        era === 'modern' ? 'complete' : undefined,
      );
      assert.equal(messages.length, what.endsWith('JSON') ? 1 : 2);
      for (const progress of messages.slice(0, -1))
        assert.deepEqual(progress.params, { progressToken: 'tok', progress: 1, total: 2 });
      await leg.session?.close();
      assert.equal(server.sessions.size, 0);
    });
  }
}

test('a legacy agent gets a list result of a modern server wrapped, as its wrapped schema says', async () => {
  await using server = await startV2Server({ legacy: 'reject' });
  await using target = targetFor(server.url);
  const leg = await Leg.open(target, 'legacy');
  const shown = presentTool(leg.tool('numbers').definition, 'modern', 'legacy');
  assert.partialDeepStrictEqual(shown['outputSchema'], { type: 'object', required: ['result'] });
  const [final] = (await leg.call('numbers', {})).slice(-1);
  assert.deepEqual(final?.result?.['structuredContent'], { result: [1, 2] });
});

for (const era of ['legacy', 'modern'] as const) {
  test(`the Mcp-Param header of a ${era} agent's argument passes the server's check, odd characters too (R54)`, async () => {
    await using server = await startV2Server({ legacy: 'reject' });
    await using target = targetFor(server.url);
    const leg = await Leg.open(target, era);
    assert.deepEqual(leg.tool('where').paramHeaders, [
      { header: 'Mcp-Param-Region', path: ['region'] },
    ]);
    const [final] = (await leg.call('where', { region: 'Zürich\r\n' })).slice(-1);
    assert.deepEqual(final?.result?.['content'], [{ type: 'text', text: 'Zürich\r\n' }]);
  });
}

test('closing the exchange cancels the tool of a modern server (R49)', async () => {
  await using server = await startV2Server({ legacy: 'reject' });
  await using target = targetFor(server.url);
  const leg = await Leg.open(target, 'modern');
  const inFlight = sendRequest(target, leg.build('wait', {}).outgoing, new RecordingSink());
  await server.waiting;
  inFlight.abort();
  await server.stopped;
});

test('notifications/cancelled with our own id cancels the tool of a legacy server', async () => {
  await using server = await startV1Server({ enableJsonResponse: false });
  await using target = targetFor(server.url);
  const leg = await Leg.open(target, 'modern');
  const inFlight = sendRequest(target, leg.build('wait', {}).outgoing, new RecordingSink());
  await server.waiting;
  assert.ok(leg.session);
  await cancelLegacy(target, leg.session, 'f-1');
  await server.stopped;
  inFlight.abort();
});

test('a legacy server that forgot the session says so, and a new session works', async () => {
  await using server = await startV1Server({ enableJsonResponse: true });
  await using target = targetFor(server.url);
  const leg = await Leg.open(target, 'legacy');
  server.forgetSessions();
  await assert.rejects(
    listTools(target, leg.side, leg.session),
    (error) => error instanceof FairleadError && error.code === 'SESSION_LOST',
  );
  const session = await openLegacySession(target, {
    protocolVersion: '2025-11-25',
    clientCapabilities: {},
  });
  assert.equal((await listTools(target, session.side, session)).tools.length, 2);
});
