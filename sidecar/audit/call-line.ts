// The canonical log line of one request: its fields and nothing else (design, audit and telemetry),
// as JSON members. What a request does not have is left out of the line; what the caller wrote and
// nobody verified is named in `untrusted_fields`.

import type { CanonicalLog } from '#core/telemetry/canonical-log.ts';
import type { CallLogLine } from '#core/telemetry/log-fields.ts';

import type { CallRecord } from './call-record.ts';
import { readProviderToolCallId, readTaskId, readTraceId } from './untrusted-ids.ts';

export interface CallLineContext {
  readonly tenantFingerprint: string;
  readonly userFingerprint: string;
  readonly agent: string;
  readonly sessionFingerprint: string | undefined;
  readonly configRevision: string;
  readonly durationMs: number;
  /** `params._meta` of the request, and its `traceparent` header. */
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly traceparent: string | string[] | undefined;
}

type FieldName = keyof CallLogLine;
type LineText = Pick<CanonicalLog, 'own' | 'foreign' | 'foreignOnce'>;

const UNTRUSTED_FIELDS = '["trace_id","task_id","provider_tool_call_id"]';
const MAX_METHOD_LENGTH = 128;

/** The members after the line's own first ones; begins with a comma. */
export function renderCallLine(
  record: CallRecord,
  context: CallLineContext,
  log: LineText,
): string {
  const { meta } = context;
  return (
    `,"event":"call","call_id":"${record.callId}"` +
    foreignOnce(log, 'trace_id', readTraceId(meta, context.traceparent)) +
    foreignOnce(log, 'task_id', readTaskId(meta)) +
    foreignOnce(log, 'provider_tool_call_id', readProviderToolCallId(meta)) +
    `,"untrusted_fields":${UNTRUSTED_FIELDS}` +
    foreign(log, 'method', record.method.slice(0, MAX_METHOD_LENGTH)) +
    own(log, 'server_id', record.serverId) +
    own(log, 'alias', record.alias) +
    own(log, 'tenant_fingerprint', context.tenantFingerprint) +
    own(log, 'user_fingerprint', context.userFingerprint) +
    own(log, 'agent', context.agent) +
    own(log, 'session_fingerprint', context.sessionFingerprint) +
    foreign(log, 'remote_tool_name', record.remoteToolName) +
    own(log, 'catalog_snapshot_id', record.catalogSnapshotId) +
    own(log, 'config_revision', context.configRevision) +
    number('connection_generation', record.connectionGeneration) +
    number('queue_wait_ms', rounded(record.queueWaitMs)) +
    number('duration_ms', rounded(context.durationMs)) +
    number('attempts', record.attempts) +
    own(log, 'result_class', record.resultClass) +
    number('request_bytes', record.requestBytes) +
    number('response_bytes', record.responseBytes) +
    number('progress_events', record.progressEvents) +
    own(log, 'error_code', record.errorCode) +
    foreignOnce(log, 'error_detail', record.errorDetail)
  );
}

function own(log: LineText, name: FieldName, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${log.own(value)}`;
}

function foreign(log: LineText, name: FieldName, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${log.foreign(value)}`;
}

function foreignOnce(log: LineText, name: FieldName, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${log.foreignOnce(value)}`;
}

function number(name: FieldName, value: number | undefined): string {
  return value === undefined ? '' : `,"${name}":${value}`;
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
