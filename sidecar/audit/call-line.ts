// The canonical log line of one request: its fields and nothing else (design, audit and telemetry).
// Pure. What a request does not have is left out of the line.

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

/** Says of itself which fields the caller wrote and nobody verified. */
export interface MarkedCallLine extends CallLogLine {
  readonly untrusted_fields: typeof UNTRUSTED_FIELDS;
}

const UNTRUSTED_FIELDS = ['trace_id', 'task_id', 'provider_tool_call_id'] as const;
const MAX_METHOD_LENGTH = 128;

export function renderCallLine(record: CallRecord, context: CallLineContext): MarkedCallLine {
  return {
    event: 'call',
    call_id: record.callId,
    trace_id: readTraceId(context.meta, context.traceparent),
    task_id: readTaskId(context.meta),
    provider_tool_call_id: readProviderToolCallId(context.meta),
    untrusted_fields: UNTRUSTED_FIELDS,
    method: record.method.slice(0, MAX_METHOD_LENGTH),
    server_id: record.serverId,
    alias: record.alias,
    tenant_fingerprint: context.tenantFingerprint,
    user_fingerprint: context.userFingerprint,
    agent: context.agent,
    session_fingerprint: context.sessionFingerprint,
    remote_tool_name: record.remoteToolName,
    catalog_snapshot_id: record.catalogSnapshotId,
    config_revision: context.configRevision,
    connection_generation: record.connectionGeneration,
    queue_wait_ms: rounded(record.queueWaitMs),
    duration_ms: rounded(context.durationMs),
    attempts: record.attempts,
    result_class: record.resultClass,
    request_bytes: record.requestBytes,
    response_bytes: record.responseBytes,
    progress_events: record.progressEvents,
    error_code: record.errorCode,
    error_detail: record.errorDetail,
  };
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
