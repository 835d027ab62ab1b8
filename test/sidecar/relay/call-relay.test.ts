// tools/list and tools/call through a whole sidecar, between agents and servers of both eras.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FakeMcpServer, type FakeEra } from '#test/support/fake-mcp-server.ts';
import { SidecarFixture, eventsOf, serverAt, toolNames } from '#test/support/sidecar-fixture.ts';

const TOOLS = [
  {
    name: 'echo',
    description: 'Gives back its arguments.',
    inputSchema: { type: 'object' },
    vendor: { kept: true },
  },
  { name: 'hidden', inputSchema: { type: 'object' } },
];

function start(
  era: FakeEra,
  options: Parameters<typeof FakeMcpServer.start>[0] = {},
): Promise<FakeMcpServer> {
  return FakeMcpServer.start({ era, tools: TOOLS, ...options });
}

function only(...names: string[]) {
  return { tools: { allow: [names], trustReadOnlyHint: false, overrides: [] } };
}

for (const serverEra of ['legacy', 'modern', 'both'] as const) {
  test(`a ${serverEra} server is listed and called by agents of both eras (R9)`, async () => {
    await using server = await start(serverEra);
    await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
    const session = await sidecar.openSession();
    for (const list of [
      await sidecar.modern('tools/list'),
      await sidecar.legacy(session, 'tools/list'),
    ]) {
      const tools = list.json.result?.['tools'] as Record<string, unknown>[];
      assert.deepEqual(
        tools.map((tool) => tool['name']),
        ['up__echo', 'up__hidden'],
      );
      assert.deepEqual(tools[0]?.['vendor'], { kept: true });
    }
    const params = { name: 'up__echo', arguments: { text: 'hi' } };
    const modern = await sidecar.modern('tools/call', params);
    assert.equal(modern.json.result?.['resultType'], 'complete');
    const legacy = await sidecar.legacy(session, 'tools/call', params);
    assert.equal(legacy.json.result?.['resultType'], undefined);
    for (const answer of [modern, legacy]) assert.match(JSON.stringify(answer.json.result), /hi/);
    const eras = new Set(
      server
        .received('tools/call')
        .map((request) => (request.headers['mcp-method'] === undefined ? 'legacy' : 'modern')),
    );
    assert.deepEqual(
      [...eras].toSorted(),
      serverEra === 'both' ? ['legacy', 'modern'] : [serverEra],
      'the era of the agent is mirrored where the server has it',
    );
  });
}

test('requests to servers carry our User-Agent and clientInfo, and never an Origin (R15)', async () => {
  await using server = await start('both');
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  const session = await sidecar.openSession();
  const meta = { 'io.modelcontextprotocol/clientInfo': { name: 'agent', version: '9' } };
  await sidecar.modern(
    'tools/call',
    { name: 'up__echo', arguments: {} },
    { meta, headers: { Authorization: 'Bearer agent-token' } },
  );
  await sidecar.legacy(
    session,
    'tools/call',
    { name: 'up__echo', arguments: {} },
    { headers: { 'X-Fairlead-Agent': 'me' } },
  );
  for (const request of server.requests) {
    assert.match(String(request.headers['user-agent']), /^fairlead\//);
    assert.equal(request.headers.origin, undefined);
    assert.equal(request.headers.authorization, undefined, "a caller's token never goes upstream");
    assert.equal(request.headers['x-fairlead-agent'], undefined);
  }
  const call = server
    .received('tools/call')
    .find((request) => request.headers['mcp-method'] !== undefined);
  const sent = call?.message?.params?.['_meta'] as Record<string, { name: string }>;
  assert.equal(sent['io.modelcontextprotocol/clientInfo']?.name, 'fairlead');
  assert.equal(
    server.received('initialize').every((request) => request.body.includes('"fairlead"')),
    true,
  );
});

test('what need not change passes byte for byte, also numbers that JavaScript cannot hold', async () => {
  await using server = await start('modern');
  server.intercept((request) =>
    request.message?.method === 'tools/call'
      ? {
          kind: 'reply',
          body: `{"jsonrpc":"2.0","id":${String(request.message.id)},"result":{"resultType":"complete","content":[],"big":12345678901234567890,"z":1.0,"a":"\\u00e4"}}`,
          headers: { 'content-type': 'application/json' },
        }
      : undefined,
  );
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  const answer = await sidecar.modern('tools/call', { name: 'up__echo', arguments: {} });
  assert.match(answer.text, /"big":12345678901234567890,"z":1\.0,"a":"\\u00e4"/);
});

test('a tool that is not allowed is not listed, and a call of it is refused like an unknown one (R8)', async () => {
  await using server = await start('both');
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port, only('echo'))]);
  const list = await sidecar.modern('tools/list');
  assert.deepEqual(toolNames(list), ['up__echo']);
  const shape = (text: string): string =>
    text.replaceAll(/hidden|nothing/g, 'NAME').replace(/"callId":"[^"]*"/, '');
  const hidden = await sidecar.modern('tools/call', { name: 'up__hidden', arguments: {} });
  const unknown = await sidecar.modern('tools/call', { name: 'up__nothing', arguments: {} });
  assert.equal(hidden.json.error?.code, -32602);
  assert.equal(shape(hidden.text), shape(unknown.text));
  const bare = await sidecar.modern(
    'tools/call',
    { name: 'hidden', arguments: {} },
    { path: '/servers/up/mcp' },
  );
  assert.equal(bare.json.error?.code, -32602);
  assert.equal(server.received('tools/call').length, 0);
});

test('nothing in a call can name an endpoint, tenant, user or scope (R8)', async () => {
  await using server = await start('both');
  await using other = await start('both');
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  const smuggled = {
    endpoint: other.url,
    url: other.url,
    tenant: 'evil',
    user: 'root',
    scope: 'admin',
    redirect_uri: other.url,
  };
  await sidecar.modern(
    'tools/call',
    { name: 'up__echo', arguments: {}, ...smuggled },
    { meta: smuggled },
  );
  assert.equal(server.received('tools/call').length, 1);
  assert.equal(other.requests.length, 0);
  const [line] = sidecar.lines('call');
  assert.notEqual(line?.['tenant_fingerprint'], undefined);
  assert.ok(!JSON.stringify(line).includes('evil'));
});

test('a bare name is refused and the candidates are named; one server alone has bare names', async () => {
  await using first = await start('both');
  await using second = await start('both');
  await using sidecar = await SidecarFixture.open([
    serverAt('one', first.port),
    serverAt('two', second.port),
  ]);
  await sidecar.modern('tools/list');
  const refused = await sidecar.modern('tools/call', { name: 'echo', arguments: {} });
  assert.match(refused.json.error?.message ?? '', /"one__echo" or "two__echo"/);
  const list = await sidecar.modern('tools/list', {}, { path: '/servers/two/mcp' });
  assert.deepEqual(toolNames(list), ['echo', 'hidden']);
  const called = await sidecar.modern(
    'tools/call',
    { name: 'echo', arguments: {} },
    { path: '/servers/two/mcp' },
  );
  assert.equal(called.status, 200);
  assert.equal(first.received('tools/call').length, 0);
  assert.equal(second.received('tools/call').length, 1);
  const missing = await sidecar.modern('tools/list', {}, { path: '/servers/three/mcp' });
  assert.equal(missing.status, 404);
});

test('a higher priority is listed first', async () => {
  await using first = await start('both');
  await using second = await start('both');
  await using sidecar = await SidecarFixture.open([
    serverAt('zed', second.port, { priority: 5 }),
    serverAt('abc', first.port),
  ]);
  const list = await sidecar.modern('tools/list');
  assert.deepEqual(toolNames(list), ['zed__echo', 'zed__hidden', 'abc__echo', 'abc__hidden']);
});

for (const [agentEra, serverEra] of [
  ['legacy', 'legacy'],
  ['modern', 'modern'],
  ['legacy', 'modern'],
  ['modern', 'legacy'],
] as const) {
  test(`progress of a ${serverEra} server reaches a ${agentEra} agent before the result, each event when it was sent`, async () => {
    const gate = Promise.withResolvers<void>();
    await using server = await start(serverEra);
    server.intercept((request) => {
      if (request.message?.method !== 'tools/call') return undefined;
      const { id } = request.message;
      const token = (request.message.params?.['_meta'] as { progressToken?: unknown } | undefined)
        ?.progressToken;
      const progress = (step: number): string =>
        `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: token, progress: step } })}\n\n`;
      const result = {
        ...(serverEra === 'modern' ? { resultType: 'complete' } : {}),
        content: [{ type: 'text', text: 'done' }],
      };
      return {
        kind: 'stream',
        chunks: (async function* () {
          yield progress(1);
          yield progress(2);
          await gate.promise;
          yield `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`;
        })(),
      };
    });
    await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
    const response = await openCall(sidecar, agentEra, 'token-1');
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (eventsOf(text).length < 2) text += (await reader?.read())?.value ?? '';
    assert.deepEqual(
      eventsOf(text).map((event) => (event['params'] as { progressToken: unknown }).progressToken),
      ['token-1', 'token-1'],
    );
    gate.resolve();
    for (let chunk = await reader?.read(); chunk?.done === false; chunk = await reader?.read())
      text += chunk.value;
    const last = eventsOf(text).at(-1);
    assert.equal(last?.['id'], 7);
    assert.match(JSON.stringify(last), /done/);
  });
}

async function openCall(
  sidecar: SidecarFixture,
  era: 'legacy' | 'modern',
  progressToken: string,
): Promise<Response> {
  const common = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
  };
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const isModern = era === 'modern';
  const headers = isModern
    ? {
        ...common,
        'MCP-Protocol-Version': '2026-07-28',
        'Mcp-Method': 'tools/call',
        'Mcp-Name': 'up__echo',
      }
    : {
        ...common,
        'MCP-Protocol-Version': '2025-11-25',
        'Mcp-Session-Id': await sidecar.openSession(),
      };
  const params = {
    name: 'up__echo',
    arguments: {},
    _meta: { progressToken, ...(isModern ? envelope : {}) },
  };
  return fetch(sidecar.url, {
    method: 'POST',
    headers,
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params }),
  });
}

test('two agents may use the same request id at once', async () => {
  await using server = await start('legacy', {
    onCall: async (call) => ({ content: [{ type: 'text', text: String(call.arguments['text']) }] }),
  });
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  const texts = Array.from({ length: 12 }, (_, index) => `agent-${String(index)}`);
  const sessions = await Promise.all(texts.slice(0, 4).map(() => sidecar.openSession()));
  const answers = await Promise.all(
    texts.map((text, index) => {
      const session = sessions[index];
      const params = { name: 'up__echo', arguments: { text } };
      return session === undefined
        ? sidecar.modern('tools/call', params, { id: 1 })
        : sidecar.legacy(session, 'tools/call', params, { id: 1 });
    }),
  );
  for (const [index, answer] of answers.entries()) {
    assert.equal(answer.json.id, 1);
    assert.match(answer.text, new RegExp(`"${texts[index] ?? ''}"`));
  }
});

test('the canonical line names everything that on-call needs and nothing secret (R101) (R102) (R103)', async () => {
  await using server = await start('legacy');
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  const session = await sidecar.openSession();
  await sidecar.legacy(session, 'tools/list');
  await sidecar.legacy(
    session,
    'tools/call',
    { name: 'up__echo', arguments: { text: 'canary-argument' } },
    {
      meta: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
    },
  );
  await sidecar.legacy(session, 'tools/call', { name: 'up__missing', arguments: {} });
  const [called, refused] = sidecar.lines('call').filter((line) => line['method'] === 'tools/call');
  for (const field of [
    'call_id',
    'trace_id',
    'server_id',
    'tenant_fingerprint',
    'user_fingerprint',
    'session_fingerprint',
    'catalog_snapshot_id',
    'remote_tool_name',
    'connection_generation',
    'queue_wait_ms',
    'duration_ms',
    'result_class',
    'config_revision',
    'attempts',
  ]) {
    assert.notEqual(called?.[field], undefined, field);
  }
  assert.equal(called?.['trace_id'], '0af7651916cd43dd8448eb211c80319c');
  assert.equal(called?.['server_id'], 'tools/up');
  assert.equal(called?.['result_class'], 'ok');
  assert.match(String(called?.['session_fingerprint']), /^[0-9a-f]{12}$/);
  assert.equal(refused?.['result_class'], 'refused');
  const everything = JSON.stringify([called, refused]);
  for (const secret of ['canary-argument', session, ...server.sessions, 'ana@example.com'])
    assert.ok(!everything.includes(secret));
});

test('rounds of input are relayed byte for byte and end at maxInputRounds (R5) (R87)', async () => {
  await using server = await start('modern');
  let round = 0;
  server.intercept((request) => {
    if (request.message?.method !== 'tools/call') return undefined;
    round += 1;
    return {
      kind: 'reply',
      body: {
        jsonrpc: '2.0',
        id: request.message.id,
        result: {
          resultType: 'input_required',
          inputRequests: { q: { method: 'elicitation/create', params: {} } },
          requestState: `opaque=${String(round)}`,
        },
      },
    };
  });
  const config = serverAt('up', server.port);
  await using sidecar = await SidecarFixture.open([
    { ...config, limits: { ...config.limits, maxInputRounds: 3 } },
  ]);
  let state: unknown;
  for (let asked = 1; asked <= 3; asked += 1) {
    const answer = await sidecar.modern(
      'tools/call',
      {
        name: 'up__echo',
        arguments: {},
        ...(state === undefined ? {} : { requestState: state, inputResponses: { q: {} } }),
      },
      { id: asked },
    );
    assert.equal(answer.json.result?.['resultType'], 'input_required');
    state = answer.json.result?.['requestState'];
    assert.equal(state, `opaque=${String(asked)}`);
  }
  const last = await sidecar.modern(
    'tools/call',
    { name: 'up__echo', arguments: {}, requestState: state, inputResponses: { q: {} } },
    { id: 9 },
  );
  assert.match(last.text, /TOO_MANY_INPUT_ROUNDS/);
});

test('ids and errors reach the agent as its own, whatever characters they have and whatever the server left out', async () => {
  await using server = await start('modern', {
    onCall: (call) => ({ content: [{ type: 'text', text: String(call.arguments['text']) }] }),
  });
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  const answer = await sidecar.modern(
    'tools/call',
    { name: 'up__echo', arguments: { text: '你好' } },
    { id: 'tök-你' },
  );
  assert.equal(answer.json.id, 'tök-你');
  assert.match(answer.text, /你好/);
  server.replyTo('tools/call', {
    kind: 'reply',
    status: 400,
    body: { jsonrpc: '2.0', id: null, error: { code: -32602, message: 'nein, ä' } },
  });
  const failed = await sidecar.modern(
    'tools/call',
    { name: 'up__echo', arguments: {} },
    { id: 'tök-你' },
  );
  assert.equal(failed.json.id, 'tök-你');
  assert.equal(failed.json.error?.message, 'nein, ä');
});
