// The canonical log line of one request: its fields and nothing else (design, audit and telemetry),
// as JSON members. What a request does not have is left out of the line; what the caller wrote and
// nobody verified is named in `untrusted_fields`. What many calls have in common, the caller and
// the tool, is put together once.

import type { CanonicalLog } from '#core/telemetry/canonical-log.ts';
import type { Fingerprinter } from '#core/telemetry/fingerprint.ts';
import type { CallLogLine } from '#core/telemetry/log-fields.ts';
import type { Principal } from '#sidecar/agent-api/exchange.ts';

import type { CallRecord } from './call-record.ts';
import { readProviderToolCallId, readTaskId, readTraceId } from './untrusted-ids.ts';

export interface CallLineContext {
  readonly principal: Principal;
  readonly configRevision: string;
  readonly sessionFingerprint: string | undefined;
  readonly durationMs: number;
  /** `params._meta` of the request, and its `traceparent` header. */
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly traceparent: string | string[] | undefined;
}

type FieldName = keyof CallLogLine;
type LineText = Pick<CanonicalLog, 'own' | 'foreign' | 'foreignOnce' | 'revision'>;
type Destination = Pick<
  CallRecord,
  'serverId' | 'alias' | 'remoteToolName' | 'catalogSnapshotId' | 'connectionGeneration'
>;

const UNTRUSTED_FIELDS = '["trace_id","task_id","provider_tool_call_id"]';
const MAX_METHOD_LENGTH = 128;
const MAX_REMEMBERED_TOOLS = 1_024;

export class CallLines {
  readonly #log: LineText;
  readonly #fingerprinter: Fingerprinter;
  readonly #tools = new Map<string, Destination & { readonly text: string }>();
  #caller: (Pick<CallLineContext, 'principal' | 'configRevision'> & { text: string }) | undefined;
  #revision = -1;

  constructor(log: LineText, fingerprinter: Fingerprinter) {
    this.#log = log;
    this.#fingerprinter = fingerprinter;
  }

  /** The members after the line's own first ones; begins with a comma. */
  render(record: CallRecord, context: CallLineContext): string {
    const log = this.#log;
    return (
      `,"event":"call","call_id":"${record.callId}"` +
      untrustedText(log, context) +
      `,"method":${log.foreign(methodOf(record))}` +
      this.#callerText(context) +
      own(log, 'session_fingerprint', context.sessionFingerprint) +
      this.#destinationText(record) +
      `,"queue_wait_ms":${rounded(record.queueWaitMs)},"duration_ms":${rounded(context.durationMs)}` +
      `,"attempts":${record.attempts},"result_class":"${record.resultClass}"` +
      `,"request_bytes":${record.requestBytes},"response_bytes":${record.responseBytes}` +
      `,"progress_events":${record.progressEvents}` +
      own(log, 'error_code', record.errorCode) +
      foreignOnce(log, 'error_detail', record.errorDetail)
    );
  }

  #callerText({ principal, configRevision }: CallLineContext): string {
    const known = this.#caller;
    if (known?.principal === principal && known.configRevision === configRevision)
      return known.text;
    const text =
      own(this.#log, 'tenant_fingerprint', this.#fingerprinter.tenant(principal.tenant)) +
      own(this.#log, 'user_fingerprint', this.#fingerprinter.user(principal.user)) +
      own(this.#log, 'agent', principal.agent) +
      own(this.#log, 'config_revision', configRevision);
    this.#caller = { principal, configRevision, text };
    return text;
  }

  #destinationText(record: Destination): string {
    const { remoteToolName } = record;
    if (remoteToolName === undefined) return destinationText(this.#log, record);
    if (this.#revision !== this.#log.revision) {
      this.#revision = this.#log.revision;
      this.#tools.clear();
    }
    const known = this.#tools.get(remoteToolName);
    if (known !== undefined && isSame(known, record)) return known.text;
    if (this.#tools.size >= MAX_REMEMBERED_TOOLS) this.#tools.clear();
    const text = destinationText(this.#log, record);
    const { serverId, alias, catalogSnapshotId, connectionGeneration } = record;
    this.#tools.set(remoteToolName, {
      serverId,
      alias,
      remoteToolName,
      catalogSnapshotId,
      connectionGeneration,
      text,
    });
    return text;
  }
}

function isSame(a: Destination, b: Destination): boolean {
  return (
    a.serverId === b.serverId &&
    a.alias === b.alias &&
    a.catalogSnapshotId === b.catalogSnapshotId &&
    a.connectionGeneration === b.connectionGeneration
  );
}

function destinationText(log: LineText, record: Destination): string {
  const { remoteToolName, connectionGeneration } = record;
  return (
    own(log, 'server_id', record.serverId) +
    own(log, 'alias', record.alias) +
    (remoteToolName === undefined ? '' : `,"remote_tool_name":${log.foreign(remoteToolName)}`) +
    own(log, 'catalog_snapshot_id', record.catalogSnapshotId) +
    (connectionGeneration === undefined ? '' : `,"connection_generation":${connectionGeneration}`)
  );
}

function untrustedText(log: LineText, { meta, traceparent }: CallLineContext): string {
  const text =
    foreignOnce(log, 'trace_id', readTraceId(meta, traceparent)) +
    foreignOnce(log, 'task_id', readTaskId(meta)) +
    foreignOnce(log, 'provider_tool_call_id', readProviderToolCallId(meta));
  return text === '' ? '' : `${text},"untrusted_fields":${UNTRUSTED_FIELDS}`;
}

function methodOf({ method }: CallRecord): string {
  return method.length > MAX_METHOD_LENGTH ? method.slice(0, MAX_METHOD_LENGTH) : method;
}

function own(log: LineText, name: FieldName, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${log.own(value)}`;
}

function foreignOnce(log: LineText, name: FieldName, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${log.foreignOnce(value)}`;
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
