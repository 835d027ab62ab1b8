import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { ErrorCode } from '#core/errors.ts';
import { decideFailure } from '#sidecar/relay/decide-failure.ts';

type Row = [
  ErrorCode,
  'no' | 'unknown',
  'ReadOnly' | 'Write' | 'Destructive',
  { attempts?: number; begun?: boolean },
  string,
];

const ROWS: Row[] = [
  ['SERVER_UNAVAILABLE', 'no', 'Write', {}, 'retry'],
  ['SERVER_UNAVAILABLE', 'no', 'Write', { attempts: 3 }, 'SERVER_UNAVAILABLE'],
  ['SERVER_BUSY', 'no', 'Destructive', {}, 'retry'],
  ['EGRESS_DENIED', 'no', 'ReadOnly', {}, 'EGRESS_DENIED'],
  ['UPSTREAM_UNAUTHORIZED', 'no', 'ReadOnly', {}, 'UPSTREAM_UNAUTHORIZED'],
  ['OUTCOME_UNKNOWN', 'unknown', 'Write', {}, 'OUTCOME_UNKNOWN'],
  ['OUTCOME_UNKNOWN', 'unknown', 'Destructive', {}, 'OUTCOME_UNKNOWN'],
  ['OUTCOME_UNKNOWN', 'unknown', 'ReadOnly', {}, 'retry'],
  ['OUTCOME_UNKNOWN', 'unknown', 'ReadOnly', { begun: true }, 'ANSWER_LOST'],
  ['OUTCOME_UNKNOWN', 'unknown', 'ReadOnly', { attempts: 3 }, 'ANSWER_LOST'],
  ['SESSION_LOST', 'unknown', 'Write', {}, 'OUTCOME_UNKNOWN'],
  ['SESSION_LOST', 'unknown', 'ReadOnly', {}, 'retry'],
  ['CALL_TIMED_OUT', 'unknown', 'ReadOnly', {}, 'CALL_TIMED_OUT'],
  ['CALL_TIMED_OUT', 'unknown', 'Write', {}, 'OUTCOME_UNKNOWN'],
  ['RESPONSE_TOO_LARGE', 'unknown', 'Write', {}, 'RESPONSE_TOO_LARGE'],
  ['UPSTREAM_PROTOCOL_ERROR', 'unknown', 'ReadOnly', {}, 'UPSTREAM_PROTOCOL_ERROR'],
];

for (const [code, sent, effect, { attempts = 1, begun = false }, expected] of ROWS) {
  test(`${effect} call, ${code}, sent ${sent}, attempt ${attempts}${begun ? ', answer begun' : ''}: ${expected}`, () => {
    const verdict = decideFailure({
      failure: { code, sent },
      effect,
      attempts,
      maxRetries: 2,
      hasAnswerBegun: begun,
    });
    assert.equal(verdict.kind === 'retry' ? 'retry' : verdict.code, expected);
  });
}
