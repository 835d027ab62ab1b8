import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { createFingerprinter } from '#core/telemetry/fingerprint.ts';
import { AgentApiFixture } from '#test/support/agent-api-fixture.ts';
import { answerEcho } from '#test/support/relay-double.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const TRACEPARENT = `00-${TRACE}-00f067aa0ba902b7-01`;

describe('the canonical line of a call', () => {
  it('has every field that the design names (R101)', async () => {
    await using fixture = await AgentApiFixture.open();
    const session = await fixture.openSession();
    fixture.relay.onCall = (exchange) => {
      Object.assign(exchange.record, {
        serverId: 'tools/desk',
        alias: 'desk',
        remoteToolName: 'echo',
        catalogSnapshotId: 'snap-1',
        connectionGeneration: 3,
        queueWaitMs: 1.23456,
        attempts: 2,
        progressEvents: 1,
      });
      answerEcho(exchange);
    };
    const _meta = {
      traceparent: TRACEPARENT,
      'fairlead.dev/taskId': 'task-1',
      'fairlead.dev/providerToolCallId': 'toolu_1',
    };
    const answer = await fixture.legacy(
      'tools/call',
      { name: 'desk__echo', arguments: { text: 'hi' }, _meta },
      { session },
    );
    const line = fixture.lines.at(-1) ?? {};
    const { call_id, duration_ms, request_bytes, session_fingerprint, ...rest } = line;
    assert.match(String(call_id), /^[0-9a-f-]{36}$/);
    assert.ok(Number(duration_ms) > 0);
    assert.ok(Number(request_bytes) > 100);
    assert.match(String(session_fingerprint), /^[0-9a-f]{12}$/);
    const fingerprints = createFingerprinter(Buffer.alloc(32, 7));
    assert.deepEqual(rest, {
      level: 'info',
      event: 'call',
      trace_id: TRACE,
      task_id: 'task-1',
      provider_tool_call_id: 'toolu_1',
      untrusted_fields: ['trace_id', 'task_id', 'provider_tool_call_id'],
      method: 'tools/call',
      server_id: 'tools/desk',
      alias: 'desk',
      tenant_fingerprint: fingerprints.tenant(fixture.admission.principal.tenant),
      user_fingerprint: fingerprints.user(fixture.admission.principal.user),
      agent: 'default',
      remote_tool_name: 'echo',
      catalog_snapshot_id: 'snap-1',
      config_revision: 'c'.repeat(64),
      connection_generation: 3,
      queue_wait_ms: 1.235,
      attempts: 2,
      result_class: 'ok',
      response_bytes: Buffer.byteLength(answer.text),
      progress_events: 1,
    });
  });

  it('is written once for each request: answered, refused, failed and unknown ones (R101)', async () => {
    await using fixture = await AgentApiFixture.open();
    await fixture.modern('tools/list');
    await fixture.modern('x');
    await fixture.send({ body: '{' });
    await fixture.send({ body: '{}', headers: { Origin: 'null' } });
    await fixture.legacy('tools/call', {}, { session: 'unknown' });
    await fixture.modern('tools/call', {});
    const summary = fixture.lines.map((line) => [line.method, line.result_class, line.error_code]);
    assert.deepEqual(summary, [
      ['tools/list', 'ok', undefined],
      ['x', 'refused', 'METHOD_NOT_FOUND'],
      ['', 'refused', 'PARSE_ERROR'],
      ['', 'refused', 'ORIGIN_REFUSED'],
      ['tools/call', 'refused', 'SESSION_NOT_FOUND'],
      ['tools/call', 'refused', 'INVALID_PARAMS'],
    ]);
    assert.ok(fixture.lines.every((line) => typeof line.tenant_fingerprint === 'string'));
  });

  it('never holds a session id, a credential, an argument or a result; the fingerprint is stable (R102, R103)', async () => {
    await using fixture = await AgentApiFixture.open();
    const session = await fixture.openSession();
    const headers = { Authorization: 'Bearer canary-token', Cookie: 'canary-cookie' };
    const params = {
      name: 'desk__echo',
      arguments: { text: 'canary-argument' },
      _meta: { 'example.com/x': 'canary-meta' },
    };
    for (let round = 0; round < 2; round += 1) {
      const { text } = await fixture.legacy('tools/call', params, { session, headers });
      assert.ok(text.includes('canary-argument'));
    }
    const text = JSON.stringify(fixture.lines);
    assert.ok(!text.includes('canary'));
    assert.ok(!text.includes(session));
    assert.ok(!text.includes('ana@example.com') && !text.includes('acme'));
    const prints = fixture.lines.map((line) => line.session_fingerprint);
    assert.equal(new Set(prints).size, 1);
  });

  it('caps what the caller writes into it', async () => {
    await using fixture = await AgentApiFixture.open();
    const meta = {
      'fairlead.dev/taskId': 'x'.repeat(500),
      'fairlead.dev/providerToolCallId': { not: 'text' },
      traceparent: `${TRACEPARENT}x`,
    };
    const method = 'm'.repeat(500);
    await fixture.modern(method, {}, { meta });
    const line = fixture.lines[0] ?? {};
    assert.deepEqual(
      [
        String(line.task_id).length,
        line.provider_tool_call_id,
        line.trace_id,
        String(line.method).length,
      ],
      [128, undefined, undefined, 128],
    );
  });

  it('counts each request once, under its server when it has one', async () => {
    await using fixture = await AgentApiFixture.open();
    fixture.relay.onCall = (exchange) => {
      exchange.record.alias = 'desk';
      answerEcho(exchange);
    };
    await fixture.modern('tools/call', { name: 'a' });
    await fixture.modern('tools/list');
    assert.deepEqual(
      fixture.finished.map(({ alias, resultClass }) => [alias, resultClass]),
      [
        ['desk', 'ok'],
        ['other', 'ok'],
      ],
    );
  });
});
