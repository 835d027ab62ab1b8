import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import fc from 'fast-check';

import { parseBearerChallenge } from '#sidecar/discovery/parse-challenge.ts';

const METADATA = 'https://mcp.example.com/.well-known/oauth-protected-resource';

suite('a Bearer challenge', () => {
  const rows: readonly (readonly [string | readonly string[], string | undefined])[] = [
    [`Bearer resource_metadata="${METADATA}"`, METADATA],
    [`bearer Resource_Metadata = "${METADATA}"`, METADATA],
    [`Bearer realm="a, b", resource_metadata="${METADATA}", scope="x y"`, METADATA],
    [`Basic realm="x", Bearer resource_metadata="${METADATA}"`, METADATA],
    [['Basic realm="x"', `Bearer resource_metadata="${METADATA}"`], METADATA],
    [`Negotiate abc==, Bearer resource_metadata="${METADATA}"`, METADATA],
    ['Bearer resource_metadata="/prm"', '/prm'],
    ['Bearer resource_metadata=prm', 'prm'],
    ['Bearer resource_metadata="a\\"b\\\\c"', 'a"b\\c'],
    ['Bearer', undefined],
    ['Bearer realm="x"', undefined],
    ['', undefined],
    // In two ways: nothing is taken of it.
    [`Bearer resource_metadata="${METADATA}", resource_metadata="https://evil.org/"`, undefined],
    [[`Bearer resource_metadata="${METADATA}"`, 'Bearer resource_metadata="/x"'], undefined],
    ['Bearer resource_metadata="unclosed', undefined],
    ['Bearer resource_metadata="a" b', undefined],
    [`Bearer resource_metadata="${'x'.repeat(9_000)}"`, undefined],
  ];
  for (const [header, expected] of rows) {
    test(`${JSON.stringify(header).slice(0, 90)} names ${expected ?? 'nothing'} (R16)`, () => {
      assert.equal(parseBearerChallenge(header)?.resourceMetadata, expected);
    });
  }

  test('gives the scope and the error when they are in order (R16)', () => {
    const challenge = parseBearerChallenge('Bearer error="insufficient_scope", scope="a b"');
    assert.deepEqual([challenge?.scope, challenge?.error], ['a b', 'insufficient_scope']);
    assert.equal(parseBearerChallenge('Bearer scope=" a"')?.scope, undefined);
  });

  test('of random text ends without an exception (R16)', () => {
    const mark = fc.constantFrom(
      'Bearer ',
      ',',
      '=',
      '"',
      '\\',
      ' ',
      'a',
      'resource_metadata',
      'x=',
    );
    fc.assert(
      fc.property(
        fc.array(fc.oneof(mark, fc.string({ unit: 'binary', maxLength: 3 }))),
        (parts) => {
          parseBearerChallenge(parts.join(''));
        },
      ),
      { numRuns: 3_000 },
    );
  });
});

test('no header is no challenge (R16)', () => {
  assert.equal(parseBearerChallenge(undefined), undefined);
});
