import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { suite, test } from 'node:test';

import { ERRORS, FairleadError, wireMessage } from '#core/errors.ts';
import type { ErrorCode, ErrorEntry } from '#core/errors.ts';
import { renderErrorTable } from '../../tools/render-error-table.ts';

const entries = Object.entries<ErrorEntry>(ERRORS);

suite('the table of errors', () => {
  test('docs/errors.md says what the table says', async () => {
    const docs = await readFile(new URL('../../docs/errors.md', import.meta.url), 'utf8');
    assert.equal(docs, renderErrorTable(), 'run npm run generate');
  });

  test('every code says what happened and what to do, in whole sentences', () => {
    for (const [code, { message, next }] of entries) {
      assert.match(code, /^[A-Z][A-Z0-9_]+$/);
      assert.match(message, /^[A-Z].+\.$/, code);
      assert.match(next, /^[A-Z].+\.$/, code);
    }
  });

  test('tool results arrive with HTTP 200, except what a health check must see', () => {
    for (const [code, entry] of entries) {
      if (entry.rpc === 'tool-error') assert.ok([200, 503].includes(entry.httpStatus), code);
    }
  });

  test('faults of a request have the JSON-RPC codes and statuses that MCP names', () => {
    const expected: Readonly<Record<string, readonly [number, number]>> = {
      PARSE_ERROR: [400, -32700],
      METHOD_NOT_FOUND: [404, -32601],
      HEADER_MISMATCH: [400, -32020],
      MISSING_CLIENT_CAPABILITY: [400, -32021],
      UNSUPPORTED_PROTOCOL_VERSION: [400, -32022],
      SESSION_NOT_FOUND: [404, -32001],
    };
    for (const [code, [status, rpc]] of Object.entries(expected)) {
      const entry = ERRORS[code as ErrorCode];
      assert.deepEqual([entry.httpStatus, entry.rpc], [status, rpc], code);
    }
  });

  test('an unknown outcome is never called retriable', () => {
    assert.equal(ERRORS.OUTCOME_UNKNOWN.isRetriable, false);
  });

  test('condition reasons are single words in CamelCase, as Kubernetes wants them', () => {
    for (const [code, { conditionReason }] of entries) {
      if (conditionReason !== null) assert.match(conditionReason, /^[A-Z][A-Za-z]+$/, code);
    }
  });
});

suite('FairleadError', () => {
  test('shows the table and the safe detail to the caller, and keeps the rest for the log', () => {
    const error = new FairleadError('SERVER_BUSY', {
      publicDetail: 'Server "files".',
      logDetail: 'queue full at 10.0.0.7',
      cause: new Error('private'),
    });
    assert.equal(error.message, wireMessage('SERVER_BUSY', 'Server "files".'));
    assert.doesNotMatch(error.message, /10\.0\.0\.7|private/);
    assert.match(error.message, /busy.*"files".*try again/is);
    assert.deepEqual(
      [error.code, error.entry, error.logDetail],
      ['SERVER_BUSY', ERRORS.SERVER_BUSY, 'queue full at 10.0.0.7'],
    );
    assert.ok(error instanceof Error);
  });
});
