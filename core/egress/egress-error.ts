// A connection that was never opened, or was closed before a byte was written: denied by policy
// (EGRESS_DENIED) or failed on the way (SERVER_UNAVAILABLE). The message is the error table's and
// never names an address: answers to an agent must not become a port scanner. The address is in
// the egress record only.

import { FairleadError } from '#core/errors.ts';
import type { ErrorCode } from '#core/errors.ts';
import type { DenyReason, EgressStage, FailureReason } from './egress-policy.ts';

export interface EgressErrorOptions {
  readonly stage: EgressStage;
  readonly reason: DenyReason | FailureReason;
  readonly cause?: unknown;
}

export class EgressError extends FairleadError {
  /** Always: the connector and the policy run before anything is written. */
  readonly wasSent = false;
  readonly stage: EgressStage;
  readonly reason: DenyReason | FailureReason;

  constructor(code: ErrorCode, options: EgressErrorOptions) {
    const { stage, reason, cause } = options;
    super(code, { logDetail: `${stage}: ${reason}`, ...(cause === undefined ? {} : { cause }) });
    this.stage = stage;
    this.reason = reason;
  }
}
