import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  classifyStatus,
  contentKind,
  parseRetryAfter,
  readRpcError,
} from '#sidecar/upstream/classify-status.ts';
import type { StatusFacts } from '#sidecar/upstream/classify-status.ts';

const methodNotFound = { code: -32601, message: 'Method not found' };

const rows: readonly (readonly [
  what: string,
  facts: Partial<StatusFacts> & { readonly status: number },
  expected: string,
])[] = [
  ['202 to a request', { status: 202 }, 'UPSTREAM_PROTOCOL_ERROR unknown'],
  ['204', { status: 204 }, 'UPSTREAM_PROTOCOL_ERROR unknown'],
  ['301', { status: 301 }, 'UPSTREAM_REDIRECTED no'],
  ['307', { status: 307 }, 'UPSTREAM_REDIRECTED no'],
  ['401', { status: 401 }, 'UPSTREAM_UNAUTHORIZED no'],
  [
    '401 with a JSON-RPC error',
    { status: 401, rpcError: { code: -32000, message: 'Unauthorized' } },
    'UPSTREAM_UNAUTHORIZED no',
  ],
  ['403', { status: 403 }, 'UPSTREAM_UNAUTHORIZED no'],
  ['429', { status: 429, rpcError: { code: -32000, message: 'slow down' } }, 'SERVER_BUSY no'],
  [
    '400 with a JSON-RPC error',
    { status: 400, rpcError: { code: -32020, message: 'Header mismatch' } },
    'answer',
  ],
  ['404 with method not found', { status: 404, rpcError: methodNotFound }, 'answer'],
  [
    '500 with a JSON-RPC error',
    { status: 500, rpcError: { code: -32603, message: 'Internal error' } },
    'answer',
  ],
  ['plain 400', { status: 400 }, 'UPSTREAM_REFUSED unknown'],
  ['plain 404 without a session', { status: 404 }, 'UPSTREAM_REFUSED unknown'],
  ['405', { status: 405 }, 'UPSTREAM_REFUSED no'],
  ['413', { status: 413 }, 'UPSTREAM_REFUSED no'],
  ['501', { status: 501 }, 'UPSTREAM_REFUSED unknown'],
  ['500', { status: 500 }, 'OUTCOME_UNKNOWN unknown'],
  ['503', { status: 503 }, 'OUTCOME_UNKNOWN unknown'],
  ['408', { status: 408 }, 'OUTCOME_UNKNOWN unknown'],
  ['404 with a session', { status: 404, hadSession: true }, 'SESSION_LOST unknown'],
  [
    '404 with a session and an error of the session',
    { status: 404, hadSession: true, rpcError: { code: -32001, message: 'Session not found' } },
    'SESSION_LOST unknown',
  ],
  [
    '404 with a session but method not found',
    { status: 404, hadSession: true, rpcError: methodNotFound },
    'answer',
  ],
  ['a plain 400 with a session', { status: 400, hadSession: true }, 'UPSTREAM_REFUSED unknown'],
  [
    '400 with a session and another error',
    {
      status: 400,
      hadSession: true,
      rpcError: { code: -32000, message: 'Unsupported protocol version' },
    },
    'answer',
  ],
  [
    '400 with a session and invalid params that speak of sessions',
    { status: 400, hadSession: true, rpcError: { code: -32602, message: 'session not found' } },
    'answer',
  ],
  ['401 with a session', { status: 401, hadSession: true }, 'UPSTREAM_UNAUTHORIZED no'],
];

for (const [what, facts, expected] of rows) {
  test(`a status is judged: ${what}`, () => {
    const verdict = classifyStatus({
      rpcError: undefined,
      text: undefined,
      hadSession: false,
      ...facts,
    });
    assert.equal(
      verdict.kind === 'answer' ? 'answer' : `${verdict.code} ${verdict.sent}`,
      expected,
    );
  });
}

const sessionForms: readonly (readonly [
  status: number,
  code: number | undefined,
  message: string,
])[] = [
  [400, -32000, 'Bad Request: Server not initialized'],
  [400, -32000, 'Bad Request: No valid session ID provided'],
  [400, -32000, 'Bad Request: Mcp-Session-Id header is required'],
  [400, -32001, 'Session not found'],
  [400, -32600, 'Invalid or expired session'],
  [400, undefined, 'Missing session ID'],
  [401, -32001, 'Session has been terminated'],
  [401, undefined, 'Unauthorized: Session not found'],
  [409, -32000, 'unknown session'],
  [410, undefined, 'session expired'],
];

for (const [status, code, message] of sessionForms) {
  const facts = {
    status,
    rpcError: code === undefined ? undefined : { code, message },
    text: code === undefined ? message : undefined,
  };
  test(`HTTP ${status} with ${JSON.stringify(message)} means a lost session, if one was sent`, () => {
    assert.deepEqual(classifyStatus({ ...facts, hadSession: true }), {
      kind: 'failure',
      code: 'SESSION_LOST',
      sent: 'unknown',
    });
    const without = classifyStatus({ ...facts, hadSession: false });
    assert.notEqual(without.kind === 'failure' ? without.code : 'answer', 'SESSION_LOST');
  });
}

test('Retry-After is read as seconds and as a date, and clamped', () => {
  const now = Date.parse('2026-08-01T00:00:00Z');
  assert.equal(parseRetryAfter('7', now), 7_000);
  assert.equal(parseRetryAfter(' 0 ', now), 0);
  assert.equal(parseRetryAfter('Sat, 01 Aug 2026 00:00:05 GMT', now), 5_000);
  assert.equal(parseRetryAfter('Sat, 01 Aug 2020 00:00:05 GMT', now), 0);
  assert.equal(parseRetryAfter('9999999999', now), 86_400_000);
  assert.equal(parseRetryAfter('soon', now), undefined);
  assert.equal(parseRetryAfter(undefined, now), undefined);
});

test('media types are read without parameters and case', () => {
  assert.equal(contentKind('application/json'), 'json');
  assert.equal(contentKind('Application/JSON; charset=utf-8'), 'json');
  assert.equal(contentKind('text/event-stream;charset=UTF-8'), 'stream');
  assert.equal(contentKind('text/html'), 'other');
  assert.equal(contentKind('application/json-seq'), 'other');
  assert.equal(contentKind(undefined), 'other');
  assert.equal(contentKind(['application/json', 'text/html']), 'other');
});

test('only an object with an error and a numeric code is a JSON-RPC error', () => {
  assert.deepEqual(readRpcError({ error: { code: 1, message: 'x' } }), { code: 1, message: 'x' });
  assert.deepEqual(readRpcError({ error: { code: 1 } }), { code: 1, message: '' });
  assert.equal(readRpcError({ error: 'invalid_token' }), undefined);
  assert.equal(readRpcError([]), undefined);
  assert.equal(readRpcError(null), undefined);
});
