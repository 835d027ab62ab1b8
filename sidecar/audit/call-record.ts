// Everything that the canonical log line of one request will say, collected while it runs.
// Never holds an argument, a result, a token or a raw session id.

export type ResultClass =
  | 'ok'
  | 'tool_error'
  | 'rpc_error'
  | 'refused'
  | 'busy'
  | 'unavailable'
  | 'timeout'
  | 'unknown'
  | 'cancelled'
  | 'protocol_error'
  | 'internal_error';

export interface CallRecord {
  readonly callId: string;
  readonly startedMs: number;
  readonly method: string;
  /** `namespace/name`. */
  serverId: string | undefined;
  alias: string | undefined;
  remoteToolName: string | undefined;
  catalogSnapshotId: string | undefined;
  connectionGeneration: number | undefined;
  /** Raw session id of the agent; logged as a fingerprint only. */
  sessionId: string | undefined;
  queueWaitMs: number;
  attempts: number;
  resultClass: ResultClass;
  errorCode: string | undefined;
  /** Goes to the log only. */
  errorDetail: string | undefined;
  requestBytes: number;
  responseBytes: number;
  progressEvents: number;
  /** Writes the line and the metrics; a second call does nothing. */
  finish(): void;
}

export interface RecordOwner {
  handleFinished(): void;
}

/** What the agent API keeps of a record besides what the relay sees. */
export interface FinishableRecord extends CallRecord {
  readonly isFinished: boolean;
  /** Told after the line was written. */
  owner: RecordOwner | undefined;
}
