// The names of log fields, in one place: what a person greps for must not have two spellings.
// A field that is not here may still be logged, but never a token, an authorization code, a
// session id, an argument or a result value, under any name.

export const LOG_FIELDS = {
  /** Word for the event: `call`, `egress`, `config`, `drain` … */
  event: 'event',
  callId: 'call_id',
  traceId: 'trace_id',
  taskId: 'task_id',
  providerToolCallId: 'provider_tool_call_id',
  serverId: 'server_id',
  tenantFingerprint: 'tenant_fingerprint',
  userFingerprint: 'user_fingerprint',
  agent: 'agent',
  sessionFingerprint: 'session_fingerprint',
  remoteToolName: 'remote_tool_name',
  catalogSnapshotId: 'catalog_snapshot_id',
  configRevision: 'config_revision',
  connectionGeneration: 'connection_generation',
  queueWaitMs: 'queue_wait_ms',
  durationMs: 'duration_ms',
  attempts: 'attempts',
  resultClass: 'result_class',
  requestBytes: 'request_bytes',
  responseBytes: 'response_bytes',
  progressEvents: 'progress_events',
  errorCode: 'error_code',
  errorDetail: 'error_detail',
  method: 'method',
  alias: 'alias',
  verdict: 'verdict',
  stage: 'stage',
  reason: 'reason',
  host: 'host',
  port: 'port',
  address: 'address',
  lookupMs: 'lookup_ms',
  hop: 'hop',
} as const;

export type LogFieldName = (typeof LOG_FIELDS)[keyof typeof LOG_FIELDS];

/** Fields of a log line: canonical names get checked spelling, others stay possible. */
export type LogFields = Readonly<
  Partial<Record<LogFieldName, string | number | boolean | undefined>>
>;

/** The canonical line of one request, refused and failed ones included (design section 5.9). */
export interface CallLogLine {
  readonly event: 'call';
  readonly call_id: string;
  readonly trace_id?: string | undefined;
  readonly task_id?: string | undefined;
  readonly provider_tool_call_id?: string | undefined;
  readonly method: string;
  readonly server_id?: string | undefined;
  readonly alias?: string | undefined;
  readonly tenant_fingerprint: string;
  readonly user_fingerprint: string;
  readonly agent: string;
  readonly session_fingerprint?: string | undefined;
  readonly remote_tool_name?: string | undefined;
  readonly catalog_snapshot_id?: string | undefined;
  readonly config_revision: string;
  readonly connection_generation?: number | undefined;
  readonly queue_wait_ms: number;
  readonly duration_ms: number;
  readonly attempts: number;
  readonly result_class: string;
  readonly request_bytes: number;
  readonly response_bytes: number;
  readonly progress_events?: number | undefined;
  readonly error_code?: string | undefined;
  readonly error_detail?: string | undefined;
}

/** The canonical line of one egress decision; the only line that names an address. */
export interface EgressLogLine {
  readonly event: 'egress';
  readonly verdict: 'allow' | 'deny' | 'failed';
  readonly stage: string;
  readonly reason: string;
  readonly alias: string;
  readonly host: string;
  readonly port: number;
  readonly address?: string | undefined;
  readonly detail?: string | undefined;
  readonly duration_ms?: number | undefined;
  readonly lookup_ms?: number | undefined;
  readonly hop?: number | undefined;
}
