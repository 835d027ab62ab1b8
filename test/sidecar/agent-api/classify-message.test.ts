import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { classifyMessage } from '#sidecar/agent-api/classify-message.ts';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const MODERN_META = { [VERSION]: '2026-07-28', [CAPABILITIES]: {} };

interface Headers {
  readonly version?: string;
  readonly method?: string;
  readonly name?: string;
}

function classify(body: unknown, headers: Headers = {}) {
  return classifyMessage(body, {
    protocolVersion: headers.version,
    method: headers.method,
    name: headers.name,
  });
}

function list(meta?: object): object {
  return {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/list',
    ...(meta === undefined ? {} : { params: { _meta: meta } }),
  };
}

function call(name: string): object {
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, _meta: MODERN_META } };
}

const LIST_HEADERS = { version: '2026-07-28', method: 'tools/list' };
const CALL_HEADERS = { version: '2026-07-28', method: 'tools/call' };

describe('the era of a request', () => {
  const rows: readonly [string, unknown, Headers, string][] = [
    ['a claim in the body and equal headers are modern', list(MODERN_META), LIST_HEADERS, 'modern'],
    ['no claim and no header is legacy', list(), {}, 'legacy'],
    ['an empty _meta is legacy', list({}), {}, 'legacy'],
    [
      'a progress token alone is legacy',
      list({ progressToken: 1 }),
      { version: '2025-06-18' },
      'legacy',
    ],
    ['a legacy version header is legacy', list(), { version: '2025-11-25' }, 'legacy'],
    ['the first streamable version is legacy', list(), { version: '2025-03-26' }, 'legacy'],
    [
      'initialize with an unknown version header is legacy',
      { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} },
      { version: '2030-01-01' },
      'legacy',
    ],
  ];
  for (const [title, body, headers, era] of rows) {
    it(title, () => {
      const classified = classify(body, headers);
      assert.equal(classified.kind, 'request');
      assert.equal(classified.kind === 'request' && classified.era, era);
    });
  }
});

describe('what is refused, and as what', () => {
  const rows: readonly [string, unknown, Headers, string, string][] = [
    ['a number', 7, {}, 'INVALID_REQUEST', 'legacy'],
    ['null', null, {}, 'INVALID_REQUEST', 'legacy'],
    ['an empty batch', [], {}, 'INVALID_REQUEST', 'legacy'],
    ['a batch', [list()], { version: '2025-03-26' }, 'INVALID_REQUEST', 'legacy'],
    ['no jsonrpc', { id: 1, method: 'ping' }, {}, 'INVALID_REQUEST', 'legacy'],
    ['JSON-RPC 1.0', { jsonrpc: '1.0', id: 1, method: 'ping' }, {}, 'INVALID_REQUEST', 'legacy'],
    ['neither method nor result', { jsonrpc: '2.0', id: 1 }, {}, 'INVALID_REQUEST', 'legacy'],
    [
      'a method that is no string',
      { jsonrpc: '2.0', id: 1, method: 1 },
      {},
      'INVALID_REQUEST',
      'legacy',
    ],
    [
      'parameters by position',
      { jsonrpc: '2.0', id: 1, method: 'ping', params: [] },
      {},
      'INVALID_REQUEST',
      'legacy',
    ],
    ['id null', { jsonrpc: '2.0', id: null, method: 'ping' }, {}, 'INVALID_REQUEST', 'legacy'],
    [
      'a fractional id',
      { jsonrpc: '2.0', id: 1.5, method: 'ping' },
      {},
      'INVALID_REQUEST',
      'legacy',
    ],
    [
      'an id that would not come back unchanged',
      { jsonrpc: '2.0', id: 2 ** 53, method: 'ping' },
      {},
      'INVALID_REQUEST',
      'legacy',
    ],
    [
      'an unknown version in the header alone',
      list(),
      { version: '2030-01-01' },
      'INVALID_REQUEST',
      'legacy',
    ],
    ['a modern header without the claim (R56)', list(), LIST_HEADERS, 'INVALID_PARAMS', 'modern'],
    [
      'a claim without capabilities (R56)',
      list({ [VERSION]: '2026-07-28' }),
      LIST_HEADERS,
      'INVALID_PARAMS',
      'modern',
    ],
    [
      'a claim whose version is no string',
      list({ [VERSION]: 1, [CAPABILITIES]: {} }),
      LIST_HEADERS,
      'INVALID_PARAMS',
      'modern',
    ],
    [
      'capabilities that are no object',
      list({ [VERSION]: '2026-07-28', [CAPABILITIES]: [] }),
      LIST_HEADERS,
      'INVALID_PARAMS',
      'modern',
    ],
    [
      'an unknown version in body and header',
      list({ [VERSION]: '2030-01-01', [CAPABILITIES]: {} }),
      { ...LIST_HEADERS, version: '2030-01-01' },
      'UNSUPPORTED_PROTOCOL_VERSION',
      'modern',
    ],
    [
      'a legacy version as a claim',
      list({ [VERSION]: '2025-11-25', [CAPABILITIES]: {} }),
      { ...LIST_HEADERS, version: '2025-11-25' },
      'UNSUPPORTED_PROTOCOL_VERSION',
      'modern',
    ],
    [
      'a version header that differs (R51)',
      list(MODERN_META),
      { ...LIST_HEADERS, version: '2025-11-25' },
      'HEADER_MISMATCH',
      'modern',
    ],
    [
      'no version header (R51)',
      list(MODERN_META),
      { method: 'tools/list' },
      'HEADER_MISMATCH',
      'modern',
    ],
    [
      'no method header (R51)',
      list(MODERN_META),
      { version: '2026-07-28' },
      'HEADER_MISMATCH',
      'modern',
    ],
    [
      'a method header that says something else (R55)',
      call('a'),
      { ...CALL_HEADERS, method: 'tools/list', name: 'a' },
      'HEADER_MISMATCH',
      'modern',
    ],
    ['no name header on tools/call (R51)', call('a'), CALL_HEADERS, 'HEADER_MISMATCH', 'modern'],
    [
      'a name header that names another tool (R51)',
      call('a'),
      { ...CALL_HEADERS, name: 'b' },
      'HEADER_MISMATCH',
      'modern',
    ],
    [
      'a modern response',
      { jsonrpc: '2.0', id: 1, result: {} },
      { version: '2026-07-28' },
      'INVALID_REQUEST',
      'modern',
    ],
    [
      'a response with result and error',
      { jsonrpc: '2.0', id: 1, result: {}, error: {} },
      {},
      'INVALID_REQUEST',
      'legacy',
    ],
  ];
  for (const [title, body, headers, code, era] of rows) {
    it(`${title} is ${code}`, () => {
      const classified = classify(body, headers);
      assert.equal(classified.kind, 'refused');
      assert.deepEqual(classified.kind === 'refused' && [classified.error.code, classified.era], [
        code,
        era,
      ]);
    });
  }

  it('an unsupported version names the modern versions only, and the one that was asked for (R52)', () => {
    const classified = classify(list({ [VERSION]: '2030-01-01', [CAPABILITIES]: {} }), {
      ...LIST_HEADERS,
      version: '2030-01-01',
    });
    assert.deepEqual(classified.kind === 'refused' && classified.error.data, {
      supported: ['2026-07-28'],
      requested: '2030-01-01',
    });
  });
});

describe('messages without an answer', () => {
  it('a message without an id is a notification of its era', () => {
    const legacy = classify({ jsonrpc: '2.0', method: 'notifications/initialized' });
    assert.deepEqual(legacy.kind === 'notification' && [legacy.era, legacy.method], [
      'legacy',
      'notifications/initialized',
    ]);
    const modern = classify({
      jsonrpc: '2.0',
      method: 'notifications/x',
      params: { _meta: MODERN_META },
    });
    assert.equal(modern.kind === 'notification' && modern.era, 'modern');
  });

  it('a legacy response is told apart from a request', () => {
    assert.equal(classify({ jsonrpc: '2.0', id: 1, result: {} }).kind, 'response');
    assert.equal(
      classify({ jsonrpc: '2.0', id: 1, error: { code: 1, message: '' } }).kind,
      'response',
    );
  });
});
