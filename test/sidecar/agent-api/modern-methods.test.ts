import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { AgentApiFixture } from '#test/support/agent-api-fixture.ts';
import { ECHO_TOOL } from '#test/support/relay-double.ts';

describe('a 2026-07-28 agent', () => {
  it('discovers the modern versions, our name and nothing that is not there', async () => {
    await using fixture = await AgentApiFixture.open();
    const { status, json } = await fixture.modern('server/discover');
    assert.equal(status, 200);
    const { ttlMs, ...result } = json.result ?? {};
    assert.ok(Number(ttlMs) > 0);
    assert.deepEqual(result.supportedVersions, ['2026-07-28']);
    assert.deepEqual(result.capabilities, { tools: {} });
    assert.equal(result.cacheScope, 'private');
    assert.equal(result.resultType, 'complete');
    assert.equal(result.instructions, undefined);
    const meta = result._meta as Record<string, { name: string }>;
    assert.equal(meta['io.modelcontextprotocol/serverInfo']?.name, 'fairlead');
  });

  it('lists and calls in one POST each, on both paths', async () => {
    await using fixture = await AgentApiFixture.open();
    const listed = await fixture.modern('tools/list', {}, { id: 'a' });
    assert.equal(listed.json.id, 'a');
    assert.deepEqual(listed.json.result?.tools, [ECHO_TOOL]);
    const called = await fixture.modern(
      'tools/call',
      { name: 'echo', arguments: { text: 'hi' } },
      { path: '/servers/desk/mcp', id: 0 },
    );
    assert.equal(called.json.id, 0);
    assert.deepEqual(called.json.result?.content, [{ type: 'text', text: 'hi' }]);
    assert.deepEqual(
      fixture.relay.exchanges.map(({ alias, era, protocolVersion, session }) => [
        alias,
        era,
        protocolVersion,
        session,
      ]),
      [
        [undefined, 'modern', '2026-07-28', undefined],
        ['desk', 'modern', '2026-07-28', undefined],
      ],
    );
  });

  it('gets 404 with -32601 for methods that are not served (R52)', async () => {
    await using fixture = await AgentApiFixture.open();
    for (const method of [
      'ping',
      'initialize',
      'logging/setLevel',
      'prompts/list',
      'resources/list',
      'tasks/get',
      'x',
      'constructor',
    ]) {
      const { status, json } = await fixture.modern(method);
      assert.deepEqual([method, status, json.error?.code, json.id], [method, 404, -32601, 1]);
    }
  });

  it('gets 400 with -32020, -32022 and -32602 as the specification says (R51, R52)', async () => {
    await using fixture = await AgentApiFixture.open();
    const mismatch = await fixture.modern(
      'tools/list',
      {},
      { headers: { 'Mcp-Method': 'tools/call' } },
    );
    assert.deepEqual(
      [mismatch.status, mismatch.json.error?.code, mismatch.json.id],
      [400, -32020, 1],
    );
    const meta = { 'io.modelcontextprotocol/protocolVersion': '1900-01-01' };
    const unsupported = await fixture.modern(
      'tools/list',
      {},
      { meta, headers: { 'MCP-Protocol-Version': '1900-01-01' } },
    );
    assert.deepEqual([unsupported.status, unsupported.json.error?.code], [400, -32022]);
    assert.deepEqual(unsupported.json.error?.data?.supported, ['2026-07-28']);
    assert.equal(unsupported.json.error?.data?.requested, '1900-01-01');
    const incomplete = await fixture.send({
      headers: { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' },
      body: { jsonrpc: '2.0', id: 9, method: 'tools/list' },
    });
    assert.deepEqual(
      [incomplete.status, incomplete.json.error?.code, incomplete.json.id],
      [400, -32602, 9],
    );
    assert.equal(fixture.relay.exchanges.length, 0);
  });

  it('must send Mcp-Name in the spelling of the body; the encoded spelling counts (R51, R53, R116)', async () => {
    await using fixture = await AgentApiFixture.open();
    const call = (name: string, headers: Record<string, string>) =>
      fixture.modern('tools/call', { name }, { headers });
    assert.equal((await call('a', { 'Mcp-Name': '' })).json.error?.code, -32020);
    assert.equal((await call('a', { 'Mcp-Name': 'b' })).json.error?.code, -32020);
    assert.equal((await call('世界', { 'Mcp-Name': '=?base64?5LiW55WM?=' })).status, 200);
  });

  it('has no sessions: ids are ignored, never minted or echoed, GET and DELETE are 405 (R57)', async () => {
    await using fixture = await AgentApiFixture.open();
    const headers = { 'Mcp-Session-Id': 'made-up', 'Last-Event-ID': '7' };
    const listed = await fixture.modern('tools/list', {}, { headers });
    assert.equal(listed.status, 200);
    assert.equal(listed.headers['mcp-session-id'], undefined);
    assert.equal(fixture.relay.exchanges[0]?.session, undefined);
    for (const method of ['GET', 'DELETE']) {
      const answer = await fixture.send({
        method,
        headers: { ...headers, 'MCP-Protocol-Version': '2026-07-28' },
      });
      assert.equal(answer.status, 405);
      assert.equal(answer.headers.allow, 'POST, DELETE');
    }
  });

  it('gets an empty 202 for a notification (R47)', async () => {
    await using fixture = await AgentApiFixture.open();
    const body = {
      jsonrpc: '2.0',
      method: 'notifications/x',
      params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } },
    };
    const { status, text } = await fixture.send({ body });
    assert.deepEqual([status, text], [202, '']);
  });

  it('gets -32602 for a call without a name or with arguments that are no object', async () => {
    await using fixture = await AgentApiFixture.open();
    for (const params of [
      {},
      { name: 1 },
      { name: 'a', arguments: [] },
      { name: 'a', arguments: null },
      { name: 'a', arguments: 'x' },
    ]) {
      const { status, json } = await fixture.modern('tools/call', params);
      assert.deepEqual([status, json.error?.code], [400, -32602], JSON.stringify(params));
    }
    assert.equal(fixture.relay.exchanges.length, 0);
  });

  it('cannot name its own tenant, user or agent; its credentials stop here (R8)', async () => {
    await using fixture = await AgentApiFixture.open();
    const headers = {
      Authorization: 'Bearer canary-7d1',
      'X-Fairlead-Agent': 'canary-agent',
      Cookie: 'canary=1',
      'Proxy-Authorization': 'Basic canary',
    };
    await fixture.modern(
      'tools/call',
      { name: 'a', tenant: 'other', user: 'other' },
      { headers, meta: { tenant: 'other' } },
    );
    const exchange = fixture.relay.exchanges[0];
    assert.deepEqual(exchange?.principal, {
      tenant: 'acme',
      user: 'ana@example.com',
      agent: 'default',
    });
    assert.ok(!JSON.stringify(exchange?.headers).includes('canary'));
    assert.ok(!JSON.stringify(fixture.lines).includes('canary'));
  });
});
