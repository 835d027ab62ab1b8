import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import fc from 'fast-check';

import { readJsonDocument } from '#core/egress/read-document.ts';
import type { DocumentFault } from '#core/egress/read-document.ts';

function read(body: string | Uint8Array, contentType: string | undefined = 'application/json') {
  return readJsonDocument({
    headers: contentType === undefined ? {} : { 'content-type': contentType },
    body: typeof body === 'string' ? Buffer.from(body) : body,
  });
}

const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;

suite('a document', () => {
  for (const type of [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json ; profile=x',
  ])
    test(`of type ${type} is read`, () => {
      assert.deepEqual(read('{"a":1}', type), { kind: 'document', value: { a: 1 } });
    });

  const faults: readonly [string, string | Uint8Array, string | undefined, DocumentFault][] = [
    ['HTML', '{}', 'text/html', 'content-type'],
    ['another JSON type', '{}', 'application/problem+json', 'content-type'],
    ['a type that begins alike', '{}', 'application/jsonx', 'content-type'],
    ['another charset', '{}', 'application/json; charset=utf-16', 'content-type'],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'application/json', 'not-utf-8'],
    ['no JSON', '{"a":', 'application/json', 'not-json'],
    ['nothing', '', 'application/json', 'not-json'],
    ['two values', '{} {}', 'application/json', 'not-json'],
    ['null', 'null', 'application/json', 'not-an-object'],
    ['a list', '[]', 'application/json', 'not-an-object'],
    ['a string', '"x"', 'application/json', 'not-an-object'],
    ['a name twice', '{"a":1,"a":2}', 'application/json', 'duplicate-name'],
    [
      'a name twice, spelled otherwise',
      '{"a":1,"\\u0061":2}',
      'application/json',
      'duplicate-name',
    ],
    [
      'a name twice, deep inside',
      '{"x":[{"y":{"b":1,"c":"}","b":2}}]}',
      'application/json',
      'duplicate-name',
    ],
    ['a prototype', '{"__proto__":{"a":1}}', 'application/json', 'reserved-name'],
    ['33 levels', deep(33), 'application/json', 'nested-too-deep'],
    ['100,000 levels', deep(100_000), 'application/json', 'nested-too-deep'],
  ];
  for (const [what, body, type, reason] of faults)
    test(`with ${what} is refused as ${reason}`, () => {
      assert.deepEqual(read(body, type), { kind: 'refused', reason });
    });

  test('without a type is refused', () => {
    assert.deepEqual(readJsonDocument({ headers: {}, body: Buffer.from('{}') }), {
      kind: 'refused',
      reason: 'content-type',
    });
  });

  test('with equal names in different objects, and equal values, is read', () => {
    const text = '{"a":{"a":"a","b":["a","a",{"a":"\\"a\\":"}]},"c":{"a":","}}';
    assert.deepEqual(read(text), { kind: 'document', value: JSON.parse(text) as unknown });
  });

  test('of any shape that JSON.stringify makes is read as JSON.parse reads it', () => {
    const value = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 6 }));
    fc.assert(
      fc.property(value, (object) => {
        const text = JSON.stringify(object);
        if (text.includes('__proto__')) return;
        assert.deepEqual(read(text), { kind: 'document', value: JSON.parse(text) as unknown });
      }),
    );
  });
});
