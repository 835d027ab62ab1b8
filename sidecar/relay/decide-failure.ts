// What a failed attempt means for the call: whether it may be made again, and what the agent is
// told. The rule behind all rows: what may have run is repeated only when the tool only reads.

import type { ErrorCode } from '#core/errors.ts';
import type { ToolEffect } from '#sidecar/catalog/tool-effect.ts';
import type { UpstreamFailure } from '#sidecar/upstream/upstream-types.ts';

export interface FailedAttempt {
  readonly failure: Pick<UpstreamFailure, 'code' | 'sent'>;
  readonly effect: ToolEffect;
  /** 1 for the first attempt. */
  readonly attempts: number;
  readonly maxRetries: number;
  /** Something of this attempt's answer has reached the agent. */
  readonly hasAnswerBegun: boolean;
}

export type FailureVerdict =
  | { readonly kind: 'retry' }
  | { readonly kind: 'answer'; readonly code: ErrorCode };

/** Not sent, and another try a moment later may reach the server. */
const TRANSIENT: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['SERVER_UNAVAILABLE', 'SERVER_BUSY']);
/** Sent, and the answer is gone though time is left. */
const LOST: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'OUTCOME_UNKNOWN',
  'ANSWER_LOST',
  'SESSION_LOST',
]);
/** The server did answer: the code says more than "unknown" would. */
const ANSWERED: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'RESPONSE_TOO_LARGE',
  'UPSTREAM_PROTOCOL_ERROR',
  'NOT_SUPPORTED_BY_SERVER',
]);

export function decideFailure(attempt: FailedAttempt): FailureVerdict {
  const { failure, effect, attempts, maxRetries, hasAnswerBegun } = attempt;
  const mayRepeat =
    failure.sent === 'no'
      ? TRANSIENT.has(failure.code)
      : effect === 'ReadOnly' && LOST.has(failure.code);
  if (mayRepeat && !hasAnswerBegun && attempts <= maxRetries) return { kind: 'retry' };
  return { kind: 'answer', code: answerCode(failure, effect) };
}

function answerCode(failure: FailedAttempt['failure'], effect: ToolEffect): ErrorCode {
  if (failure.sent === 'no' || ANSWERED.has(failure.code)) return failure.code;
  if (effect !== 'ReadOnly') return 'OUTCOME_UNKNOWN';
  return failure.code === 'OUTCOME_UNKNOWN' ? 'ANSWER_LOST' : failure.code;
}
