import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { checkMirroredHeaders, decodeHeaderValue } from '#sidecar/agent-api/mirrored-headers.ts';

describe('the Base64 sentinel form of a header value (R53)', () => {
  const rows: readonly [string, string | undefined][] = [
    ['us-west1', 'us-west1'],
    ['=?base64?SGVsbG8sIOS4lueVjA==?=', 'Hello, 世界'],
    ['=?base64?IHBhZGRlZCA=?=', ' padded '],
    ['=?base64?bGluZTEKbGluZTI=?=', 'line1\nline2'],
    ['=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=', '=?base64?literal?='],
    ['=?base64??=', ''],
    // The markers are case-sensitive: these are ordinary values.
    ['=?BASE64?SGk=?=', '=?BASE64?SGk=?='],
    ['=?base64?SGk=', '=?base64?SGk='],
    // Not canonical Base64, or not UTF-8.
    ['=?base64?SGk?=', undefined],
    ['=?base64?S G k=?=', undefined],
    ['=?base64?SGk=%%?=', undefined],
    ['=?base64?_-8=?=', undefined],
    ['=?base64?/w==?=', undefined],
  ];
  for (const [value, expected] of rows) {
    it(`${JSON.stringify(value)} is ${JSON.stringify(expected)}`, () =>
      assert.equal(decodeHeaderValue(value), expected));
  }
});

describe('Mcp-Name', () => {
  const check = (name: string | undefined, method: string, params: Record<string, unknown>) =>
    checkMirroredHeaders({ protocolVersion: '2026-07-28', method, name }, { method, params })?.code;
  const rows: readonly [
    string,
    string | undefined,
    string,
    Record<string, unknown>,
    string | undefined,
  ][] = [
    ['equals the name of a tool', 'a', 'tools/call', { name: 'a' }, undefined],
    [
      'is decoded before it is compared (R116)',
      '=?base64?5LiW55WM?=',
      'tools/call',
      { name: '世界' },
      undefined,
    ],
    ['may be encoded without need', '=?base64?YQ==?=', 'tools/call', { name: 'a' }, undefined],
    [
      'equals the URI of a resource',
      'file:///a',
      'resources/read',
      { uri: 'file:///a' },
      undefined,
    ],
    ['differs in case', 'A', 'tools/call', { name: 'a' }, 'HEADER_MISMATCH'],
    ['is not valid Base64', '=?base64?*?=', 'tools/call', { name: '*' }, 'HEADER_MISMATCH'],
    ['is not needed by tools/list', undefined, 'tools/list', {}, undefined],
    ['is not looked at on tools/list', 'x', 'tools/list', { name: 'a' }, undefined],
    ['cannot be compared when the body names nothing', 'x', 'tools/call', {}, undefined],
    ['is not taken from the prototype', undefined, 'constructor', {}, undefined],
  ];
  for (const [title, name, method, params, code] of rows) {
    it(title, () => assert.equal(check(name, method, params), code));
  }
});
