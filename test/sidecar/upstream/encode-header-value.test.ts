import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { decodeHeaderValue } from '#sidecar/agent-api/mirrored-headers.ts';
import { encodeHeaderValue } from '#sidecar/upstream/encode-header-value.ts';

const rows: readonly (readonly [what: string, value: string, encoded: string])[] = [
  ['plain ASCII stays as it is', 'us-west1', 'us-west1'],
  ['inner spaces stay', 'a b', 'a b'],
  ['non-ASCII text is encoded', 'Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
  ['spaces at the ends are encoded', ' padded ', '=?base64?IHBhZGRlZCA=?='],
  ['a line feed is encoded', 'line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
  ['a header injection is encoded', 'a\r\nX: y', '=?base64?YQ0KWDogeQ==?='],
  ['what looks encoded is encoded', '=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
  ['a non-ASCII tool name is encoded', 'tööl', '=?base64?dMO2w7Zs?='],
  ['only the prefix of the sentinel is plain', '=?base64?x', '=?base64?x'],
];

for (const [what, value, encoded] of rows) {
  test(`a header value: ${what}`, () => assert.equal(encodeHeaderValue(value), encoded));
}

test('every well-formed text comes back from its header value, which has visible ASCII and inner spaces only (R53)', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const encoded = encodeHeaderValue(text);
      assert.match(encoded, /^([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?$/);
      assert.equal(decodeHeaderValue(encoded), text);
    }),
  );
});
