import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { readProviderToolCallId, readTaskId, readTraceId } from '#sidecar/audit/untrusted-ids.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const valid = `00-${TRACE}-00f067aa0ba902b7-01`;

describe('the trace id', () => {
  const rows: readonly [string, unknown, unknown, string | undefined][] = [
    ['comes from _meta', valid, undefined, TRACE],
    ['comes from the header when _meta has none', undefined, valid, TRACE],
    [
      'prefers _meta, which the agent wrote for this request',
      valid,
      `00-${'a'.repeat(32)}-00f067aa0ba902b7-01`,
      TRACE,
    ],
    [
      'may come in a later version with more fields',
      `01-${TRACE}-00f067aa0ba902b7-01-more`,
      undefined,
      TRACE,
    ],
    ['is not all zeros', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`, undefined, undefined],
    ['is not of the forbidden version', `ff-${TRACE}-00f067aa0ba902b7-01`, undefined, undefined],
    ['is lower-case hex', valid.toUpperCase(), undefined, undefined],
    ['is not part of a longer text', ` ${valid}`, undefined, undefined],
    ['is not a list', [valid], [valid], undefined],
    ['is not read from an endless text', `${valid}-${'x'.repeat(1000)}`, undefined, undefined],
  ];
  for (const [title, inMeta, header, expected] of rows) {
    it(title, () => assert.equal(readTraceId({ traceparent: inMeta }, header), expected));
  }
});

describe('the ids of task and tool call', () => {
  it('are read from their keys, the related task as a second choice', () => {
    assert.equal(
      readTaskId({
        'fairlead.dev/taskId': 'a',
        'io.modelcontextprotocol/related-task': { taskId: 'b' },
      }),
      'a',
    );
    assert.equal(readTaskId({ 'io.modelcontextprotocol/related-task': { taskId: 'b' } }), 'b');
    assert.equal(readProviderToolCallId({ 'fairlead.dev/providerToolCallId': 'c' }), 'c');
  });

  it('are nothing when they are no text, or empty, or there is no _meta', () => {
    for (const value of [1, null, {}, [], '', true]) {
      assert.equal(readTaskId({ 'fairlead.dev/taskId': value }), undefined);
      assert.equal(readTaskId({ 'io.modelcontextprotocol/related-task': value }), undefined);
      assert.equal(readProviderToolCallId({ 'fairlead.dev/providerToolCallId': value }), undefined);
    }
    assert.equal(readTaskId(undefined), undefined);
  });
});
