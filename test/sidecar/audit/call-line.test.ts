import assert from 'node:assert/strict';
import { test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { tenantId, userId } from '#core/identity/ids.ts';
import { createCanonicalLog } from '#core/telemetry/canonical-log.ts';
import { createFingerprinter } from '#core/telemetry/fingerprint.ts';
import { createSecretRegistry } from '#core/telemetry/redact.ts';
import { CallLines } from '#sidecar/audit/call-line.ts';
import type { CallRecord } from '#sidecar/audit/call-record.ts';

const PRINCIPAL = { tenant: tenantId('acme'), user: userId('ana'), agent: 'default' };

function makeLines() {
  const secrets = createSecretRegistry();
  const destination = { write() {} };
  const log = createCanonicalLog({ name: 'test', destination, clock: systemClock, secrets });
  const lines = new CallLines(log, createFingerprinter(Buffer.alloc(32, 7)));
  const render = (record: Partial<CallRecord>, principal = PRINCIPAL) => {
    const text = lines.render(
      {
        callId: 'c1',
        startedMs: 0,
        method: 'tools/call',
        serverId: 'tools/desk',
        alias: 'desk',
        remoteToolName: 'read_file',
        catalogSnapshotId: 'snap-1',
        connectionGeneration: 1,
        sessionId: undefined,
        queueWaitMs: 0,
        attempts: 1,
        resultClass: 'ok',
        errorCode: undefined,
        errorDetail: undefined,
        requestBytes: 1,
        responseBytes: 2,
        progressEvents: 0,
        finish() {},
        ...record,
      },
      {
        principal,
        configRevision: 'rev-1',
        sessionFingerprint: undefined,
        durationMs: 1,
        meta: undefined,
        traceparent: undefined,
      },
    );
    return JSON.parse(`{${text.slice(1)}}`) as Record<string, unknown>;
  };
  return { secrets, render };
}

test('calls of equally named tools name their own server, snapshot and connection', () => {
  const { render } = makeLines();
  const places = [
    { serverId: 'tools/desk', alias: 'desk', catalogSnapshotId: 's1', connectionGeneration: 1 },
    { serverId: 'tools/files', alias: 'files', catalogSnapshotId: 's1', connectionGeneration: 1 },
    { serverId: 'tools/files', alias: 'files', catalogSnapshotId: 's2', connectionGeneration: 1 },
    { serverId: 'tools/files', alias: 'files', catalogSnapshotId: 's2', connectionGeneration: 2 },
    { serverId: 'tools/files', alias: 'other', catalogSnapshotId: 's2', connectionGeneration: 2 },
  ];
  for (const place of [...places, ...places.toReversed()]) {
    const line = render(place);
    assert.deepEqual(
      [line.server_id, line.alias, line.catalog_snapshot_id, line.connection_generation],
      Object.values(place),
    );
  }
});

test('a line names its own caller', () => {
  const { render } = makeLines();
  const other = { ...PRINCIPAL, user: userId('ben'), agent: 'planner' };
  const [ana, ben, again] = [render({}), render({}, other), render({})];
  assert.notEqual(ana.user_fingerprint, ben.user_fingerprint);
  assert.deepEqual([ana.agent, ben.agent], ['default', 'planner']);
  assert.deepEqual(again, ana);
});

test('a tool name that has become a secret leaves no line any more (R102)', () => {
  const { secrets, render } = makeLines();
  assert.equal(render({}).remote_tool_name, 'read_file');
  secrets.add('read_file');
  assert.equal(render({}).remote_tool_name, '[redacted]');
});

test('only the beginning of a long method is told', () => {
  const { render } = makeLines();
  assert.equal(render({ method: 'm'.repeat(500) }).method, 'm'.repeat(128));
});
