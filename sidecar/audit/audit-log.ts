// Writes exactly one canonical line, and counts once, for each request: answered, failed, refused
// or cancelled. It sees no argument, no result and no credential, and what it is not given it
// cannot leak (R102). Tenants and users appear as keyed fingerprints, sessions as hashes (R103).

import type { IncomingHttpHeaders } from 'node:http';

import type { Clock } from '#core/clock.ts';
import { ERRORS } from '#core/errors.ts';
import type { ErrorCode } from '#core/errors.ts';
import { sessionFingerprint } from '#core/telemetry/fingerprint.ts';
import type { Fingerprinter } from '#core/telemetry/fingerprint.ts';
import type { CanonicalLog } from '#core/telemetry/canonical-log.ts';
import type { SidecarMetrics } from '#core/telemetry/metrics.ts';
import { OTHER_KEY } from '#core/telemetry/series.ts';

import type { Principal } from '#sidecar/agent-api/exchange.ts';
import { nextCallId } from './call-id.ts';
import { CallLines } from './call-line.ts';
import type { FinishableRecord, RecordOwner, ResultClass } from './call-record.ts';

const MAX_REMEMBERED_SESSIONS = 4_096;

export interface AuditLogOptions {
  readonly clock: Clock;
  readonly log: CanonicalLog;
  readonly fingerprinter: Fingerprinter;
  readonly metrics: Pick<SidecarMetrics, 'callStarted' | 'callFinished'>;
}

export interface RecordOptions {
  /** Empty when the request was refused before its method was known. */
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** `params._meta` of the request. */
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
  readonly principal: Principal;
  readonly configRevision: string;
  readonly requestBytes?: number;
}

export class AuditLog {
  readonly #options: AuditLogOptions;
  readonly #lines: CallLines;
  readonly #sessions = new Map<string, string>();

  constructor(options: AuditLogOptions) {
    this.#options = options;
    this.#lines = new CallLines(options.log, options.fingerprinter);
  }

  open(options: RecordOptions): FinishableRecord {
    return new RequestRecord(options, this);
  }

  nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  started(alias: string): void {
    this.#options.metrics.callStarted(alias);
  }

  finished(record: RequestRecord): void {
    const { log, metrics } = this.#options;
    const { principal, configRevision, meta, headers } = record.options;
    const durationMs = this.nowMs() - record.startedMs;
    metrics.callFinished(
      {
        alias: record.alias ?? OTHER_KEY,
        resultClass: record.resultClass,
        durationMs,
        queueWaitMs: record.queueWaitMs,
        requestBytes: record.requestBytes,
        responseBytes: record.responseBytes,
      },
      record.alias !== undefined,
    );
    const members = this.#lines.render(record, {
      principal,
      configRevision,
      sessionFingerprint:
        record.sessionId === undefined ? undefined : this.#fingerprintOf(record.sessionId),
      durationMs,
      meta,
      traceparent: headers.traceparent,
    });
    log.write(levelOf(record.errorCode), members, 'call');
  }

  /** A session makes many calls; its hash is made once. */
  #fingerprintOf(sessionId: string): string {
    const known = this.#sessions.get(sessionId);
    if (known !== undefined) return known;
    if (this.#sessions.size >= MAX_REMEMBERED_SESSIONS) this.#sessions.clear();
    const fingerprint = sessionFingerprint(sessionId);
    this.#sessions.set(sessionId, fingerprint);
    return fingerprint;
  }
}

function levelOf(errorCode: string | undefined): 'debug' | 'info' | 'warn' | 'error' {
  return errorCode !== undefined && Object.hasOwn(ERRORS, errorCode)
    ? ERRORS[errorCode as ErrorCode].logLevel
    : 'info';
}

class RequestRecord implements FinishableRecord {
  readonly callId = nextCallId();
  readonly startedMs: number;
  readonly method: string;
  readonly options: RecordOptions;
  serverId: string | undefined = undefined;
  remoteToolName: string | undefined = undefined;
  catalogSnapshotId: string | undefined = undefined;
  connectionGeneration: number | undefined = undefined;
  sessionId: string | undefined = undefined;
  queueWaitMs = 0;
  attempts = 0;
  resultClass: ResultClass = 'ok';
  errorCode: string | undefined = undefined;
  errorDetail: string | undefined = undefined;
  requestBytes: number;
  responseBytes = 0;
  progressEvents = 0;
  isFinished = false;
  owner: RecordOwner | undefined = undefined;
  readonly #log: AuditLog;
  #alias: string | undefined = undefined;

  constructor(options: RecordOptions, log: AuditLog) {
    this.options = options;
    this.method = options.method;
    this.requestBytes = options.requestBytes ?? 0;
    this.startedMs = log.nowMs();
    this.#log = log;
  }

  get alias(): string | undefined {
    return this.#alias;
  }

  /** Naming the server is what starts the call for its gauge of calls in flight. */
  set alias(alias: string | undefined) {
    if (this.#alias !== undefined || alias === undefined || this.isFinished) return;
    this.#alias = alias;
    this.#log.started(alias);
  }

  finish(): void {
    if (this.isFinished) return;
    this.isFinished = true;
    this.#log.finished(this);
    this.owner?.handleFinished();
  }
}
