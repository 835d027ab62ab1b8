import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';

import { answerResult } from '#sidecar/agent-api/answers.ts';
import type { AgentExchange } from '#sidecar/agent-api/exchange.ts';
import { AgentApiFixture, admissionOf, initializeParams } from '#test/support/agent-api-fixture.ts';
import { answerEcho } from '#test/support/relay-double.ts';

describe('initialize', () => {
  const rows: readonly [string, string][] = [
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-03-26'],
    ['2024-11-05', '2025-11-25'],
    ['2026-07-28', '2025-11-25'],
    ['2031-01-01', '2025-11-25'],
  ];
  for (const [asked, given] of rows) {
    it(`answers ${given} to ${asked}`, async () => {
      await using fixture = await AgentApiFixture.open();
      const { status, headers, json } = await fixture.legacy('initialize', initializeParams(asked));
      assert.equal(status, 200);
      assert.equal(json.result?.protocolVersion, given);
      assert.deepEqual(json.result?.capabilities, { tools: {} });
      assert.match(JSON.stringify(json.result?.serverInfo), /"name":"fairlead"/);
      assert.equal(json.result?.instructions, undefined);
      assert.match(String(headers['mcp-session-id']), /^[\x21-\x7e]{22,}$/);
    });
  }

  it('opens a new session each time, also on a connection that has one', async () => {
    await using fixture = await AgentApiFixture.open();
    const first = await fixture.openSession();
    const again = await fixture.legacy('initialize', initializeParams(), { session: first });
    assert.notEqual(again.headers['mcp-session-id'], first);
    assert.equal(fixture.sessions.size, 2);
  });

  it('without a version is -32602 inside a 200, and opens nothing', async () => {
    await using fixture = await AgentApiFixture.open();
    const { status, json, headers } = await fixture.legacy('initialize', {});
    assert.deepEqual(
      [status, json.error?.code, headers['mcp-session-id']],
      [200, -32602, undefined],
    );
    assert.equal(fixture.sessions.size, 0);
  });
});

describe('a session', () => {
  it('serves ping, list, call and notifications', async () => {
    await using fixture = await AgentApiFixture.open();
    const session = await fixture.openSession();
    const initialized = await fixture.legacy('notifications/initialized', {}, { session });
    assert.deepEqual([initialized.status, initialized.text], [202, '']);
    assert.deepEqual((await fixture.legacy('ping', undefined, { session })).json.result, {});
    const listed = await fixture.legacy('tools/list', {}, { session });
    assert.ok(Array.isArray(listed.json.result?.tools) && listed.json.result.tools.length === 1);
    assert.equal(listed.json.result?.resultType, undefined);
    const called = await fixture.legacy(
      'tools/call',
      { name: 'desk__echo', arguments: { text: 'hi' } },
      { session, id: 'x' },
    );
    assert.deepEqual(
      [called.json.id, called.json.result?.content],
      ['x', [{ type: 'text', text: 'hi' }]],
    );
    assert.deepEqual(
      fixture.relay.exchanges.map(({ era, protocolVersion }) => [era, protocolVersion]),
      [
        ['legacy', '2025-11-25'],
        ['legacy', '2025-11-25'],
      ],
    );
  });

  it('keeps its version whether the header repeats it, names another known one, or is absent', async () => {
    await using fixture = await AgentApiFixture.open();
    const opened = await fixture.legacy('initialize', initializeParams('2025-06-18'));
    const session = String(opened.headers['mcp-session-id']);
    for (const version of ['2025-06-18', '2025-03-26', '']) {
      const answer = await fixture.legacy(
        'tools/list',
        {},
        { session, headers: { 'MCP-Protocol-Version': version } },
      );
      assert.equal(answer.status, 200);
    }
    assert.deepEqual(
      fixture.relay.exchanges.map(({ protocolVersion }) => protocolVersion),
      ['2025-06-18', '2025-06-18', '2025-06-18'],
    );
    const unknown = await fixture.legacy(
      'tools/list',
      {},
      { session, headers: { 'MCP-Protocol-Version': '1999-01-01' } },
    );
    assert.equal(unknown.status, 400);
  });

  it('is required: without its id 400, with an unknown one 404, for every kind of message', async () => {
    await using fixture = await AgentApiFixture.open();
    const bodies = [
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 1, result: {} },
    ];
    for (const body of bodies) {
      assert.equal((await fixture.send({ body })).status, 400);
      assert.equal(
        (await fixture.send({ body, headers: { 'Mcp-Session-Id': 'unknown' } })).status,
        404,
      );
    }
    assert.equal((await fixture.send({ method: 'DELETE' })).status, 400);
    assert.equal(
      (await fixture.send({ method: 'DELETE', headers: { 'Mcp-Session-Id': 'unknown' } })).status,
      404,
    );
    assert.equal(
      (await fixture.send({ method: 'GET', headers: { 'Mcp-Session-Id': 'unknown' } })).status,
      404,
    );
    assert.equal((await fixture.send({ method: 'GET' })).status, 405);
  });

  it('of another user, or of another path, is 404 for POST, GET and DELETE, and lives on (R20)', async () => {
    await using fixture = await AgentApiFixture.open();
    const session = await fixture.openSession();
    const headers = { 'Mcp-Session-Id': session };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const uses = async (path = '/mcp') => [
      (await fixture.send({ path, body, headers })).status,
      (await fixture.send({ path, method: 'GET', headers })).status,
      (await fixture.send({ path, method: 'DELETE', headers })).status,
    ];
    assert.deepEqual(await uses('/servers/desk/mcp'), [404, 404, 404]);
    const owner = fixture.admission;
    fixture.admission = admissionOf('bob@example.com');
    assert.deepEqual(await uses(), [404, 404, 404]);
    fixture.admission = owner;
    assert.deepEqual(await uses(), [200, 405, 204]);
  });

  it('ends with DELETE: its closing runs, its requests are cancelled, its id is unknown', async () => {
    await using fixture = await AgentApiFixture.open();
    const session = await fixture.openSession();
    const events: string[] = [];
    const started = Promise.withResolvers<void>();
    fixture.relay.onCall = (exchange) => {
      exchange.onCancelled(() => events.push('cancelled'));
      exchange.session?.onClosed(() => void events.push('closed'));
      started.resolve();
    };
    const pending = fixture.legacy('tools/call', { name: 'a' }, { session });
    await started.promise;
    const ended = await fixture.send({ method: 'DELETE', headers: { 'Mcp-Session-Id': session } });
    assert.equal(ended.status, 204);
    await pending;
    assert.deepEqual(events, ['cancelled', 'closed']);
    assert.equal((await fixture.legacy('ping', {}, { session })).status, 404);
  });

  it('answers unsupported methods with -32601 inside a 200', async () => {
    await using fixture = await AgentApiFixture.open();
    const session = await fixture.openSession();
    for (const method of [
      'logging/setLevel',
      'resources/list',
      'prompts/get',
      'server/discover',
      'x',
    ]) {
      const { status, json } = await fixture.legacy(method, {}, { session });
      assert.deepEqual([status, json.error?.code], [200, -32601], method);
    }
  });

  it('accepts responses and unknown notifications with 202 (R47)', async () => {
    await using fixture = await AgentApiFixture.open();
    const session = await fixture.openSession();
    const headers = { 'Mcp-Session-Id': session };
    assert.equal(
      (await fixture.send({ headers, body: { jsonrpc: '2.0', id: 5, result: {} } })).status,
      202,
    );
    assert.equal(
      (await fixture.legacy('notifications/roots/list_changed', {}, { session })).status,
      202,
    );
    assert.equal(
      (await fixture.legacy('notifications/cancelled', { requestId: 77 }, { session })).status,
      202,
    );
  });
});

describe('request ids', () => {
  it('that are in flight are refused in the same session, and free again after the answer', async () => {
    await using fixture = await AgentApiFixture.open();
    const session = await fixture.openSession();
    const held: AgentExchange[] = [];
    const started = Promise.withResolvers<void>();
    fixture.relay.onCall = (exchange) => {
      held.push(exchange);
      started.resolve();
    };
    const first = fixture.legacy(
      'tools/call',
      { name: 'a', arguments: { text: 'one' } },
      { session, id: 1 },
    );
    await started.promise;
    const second = await fixture.legacy('tools/call', { name: 'b' }, { session, id: 1 });
    assert.deepEqual(
      [second.status, second.json.error?.code, second.json.error?.data?.code],
      [400, -32600, 'DUPLICATE_REQUEST_ID'],
    );
    // The text "1" is another id than the number 1.
    const text = fixture.legacy('ping', {}, { session, id: '1' });
    assert.equal((await text).status, 200);
    for (const exchange of held) answerEcho(exchange);
    assert.deepEqual((await first).json.result?.content, [{ type: 'text', text: 'one' }]);
    fixture.relay.onCall = answerEcho;
    for (let round = 0; round < 5; round += 1) {
      assert.equal(
        (await fixture.legacy('tools/call', { name: 'a' }, { session, id: 1 })).status,
        200,
      );
    }
  });

  it('that are equal at once in two sessions, and in modern requests, each get their own answer', async () => {
    await using fixture = await AgentApiFixture.open();
    const sessions = [await fixture.openSession(), await fixture.openSession()];
    const held: AgentExchange[] = [];
    const all = Promise.withResolvers<void>();
    fixture.relay.onCall = (exchange) => {
      held.push(exchange);
      if (held.length === 4) all.resolve();
    };
    const params = (text: string) => ({ name: 'a', arguments: { text } });
    const answers = [
      fixture.legacy('tools/call', params('0'), { session: String(sessions[0]), id: 1 }),
      fixture.legacy('tools/call', params('1'), { session: String(sessions[1]), id: 1 }),
      fixture.modern('tools/call', params('2'), { id: 1 }),
      fixture.modern('tools/call', params('3'), { id: 1 }),
    ];
    await all.promise;
    for (const exchange of held.reverse()) answerEcho(exchange);
    const texts = (await Promise.all(answers)).map(
      ({ json }) => (json.result?.content as { text: string }[] | undefined)?.[0]?.text,
    );
    assert.deepEqual(texts, ['0', '1', '2', '3']);
  });
});

describe('cancellation', () => {
  it('by notification reaches the one request, once, and ends its response without an answer', async () => {
    await using fixture = await AgentApiFixture.open();
    const session = await fixture.openSession();
    const cancelled: unknown[] = [];
    const both = Promise.withResolvers<void>();
    const held: AgentExchange[] = [];
    fixture.relay.onCall = (exchange) => {
      exchange.onCancelled(() => cancelled.push(exchange.request.id));
      held.push(exchange);
      if (held.length === 2) both.resolve();
    };
    const kept = fixture.legacy(
      'tools/call',
      { name: 'a', arguments: { text: 'kept' } },
      { session, id: 1 },
    );
    const dropped = fixture.legacy('tools/call', { name: 'a' }, { session, id: 2 });
    await both.promise;
    for (let round = 0; round < 2; round += 1)
      await fixture.legacy(
        'notifications/cancelled',
        { requestId: 2, reason: 'tired' },
        { session },
      );
    const end = await dropped;
    assert.equal(end.headers['content-type'], 'text/event-stream');
    assert.equal(end.text, '');
    for (const exchange of held) answerEcho(exchange);
    assert.deepEqual((await kept).json.result?.content, [{ type: 'text', text: 'kept' }]);
    assert.deepEqual(cancelled, [2]);
    assert.deepEqual(
      fixture.lines.filter((line) => line.method === 'tools/call').map((line) => line.result_class),
      ['cancelled', 'ok'],
    );
  });

  it('by hanging up reaches the relay once, in both eras, and leaves one line', async () => {
    await using fixture = await AgentApiFixture.open();
    const session = await fixture.openSession();
    for (const era of ['legacy', 'modern'] as const) {
      const hangUp = new AbortController();
      const gone = Promise.withResolvers<void>();
      let count = 0;
      fixture.relay.onCall = (exchange) => {
        exchange.onCancelled(() => {
          count += 1;
          gone.resolve();
        });
        hangUp.abort();
        void once(exchange.response, 'close').then(() => answerResult(exchange, {}));
      };
      const call =
        era === 'legacy'
          ? fixture.legacy('tools/call', { name: 'a' }, { session, signal: hangUp.signal })
          : fixture.modern('tools/call', { name: 'a' }, { signal: hangUp.signal });
      await assert.rejects(call);
      await gone.promise;
      assert.equal(count, 1);
    }
    const lines = fixture.lines.filter((line) => line.method === 'tools/call');
    assert.deepEqual(
      lines.map((line) => line.result_class),
      ['cancelled', 'cancelled'],
    );
    assert.equal(fixture.api.inFlight, 0);
  });
});
