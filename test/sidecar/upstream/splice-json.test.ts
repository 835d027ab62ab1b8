import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { FairleadError } from '#core/errors.ts';
import { isObjectAt, readMembers, valueStartOf } from '#sidecar/upstream/json-members.ts';
import {
  CLIENT_INFO_KEY,
  locateRequest,
  memberOf,
  splice,
  spliceText,
} from '#sidecar/upstream/splice-json.ts';
import type { Span } from '#sidecar/upstream/splice-json.ts';

const body = Buffer.from(`{ "jsonrpc":"2.0", "id" : 12345678901234567890,
  "method":"tools/call","params":{"arguments":{"name":"no \\"this\\"","big":12345678901234567890,"é":"世界"},"name": "a__b" ,
  "_meta":{"io.modelcontextprotocol\\/clientInfo":{"name":"x"},"progressToken":1}},"extra":[{"id":1},"]}"]}`);

function at(span: Span | undefined): string {
  assert.ok(span);
  return body.toString('utf8', span.start, span.end);
}

test('the parts of a body are found where they are, not where the same words stand elsewhere', () => {
  const spans = locateRequest(body);
  assert.equal(at(spans.id), '12345678901234567890');
  assert.equal(at(spans.method), '"tools/call"');
  assert.equal(at(spans.name), '"a__b"');
  const info = memberOf(spans.metaMembers ?? [], CLIENT_INFO_KEY);
  assert.ok(info);
  assert.equal(body.toString('utf8', info.valueStart, info.end), '{"name":"x"}');
});

test('a splice changes its spans and keeps every other byte', () => {
  const { name } = locateRequest(body);
  assert.ok(name);
  const spliced = splice(body, [{ ...name, text: '"tööl"' }]);
  assert.equal(spliced.toString('utf8'), body.toString('utf8').replace('"a__b"', '"tööl"'));
});

const refused: readonly (readonly [what: string, body: string])[] = [
  ['a second name', '{"id":1,"method":"m","params":{"name":"a","name":"b"}}'],
  ['a second name in escapes', '{"id":1,"method":"m","params":{"name":"a","n\\u0061me":"b"}}'],
  ['a second id', '{"id":1,"id":2,"method":"m"}'],
  ['a second method', '{"id":1,"method":"a","method":"b"}'],
  ['a second params', '{"id":1,"method":"a","params":{},"params":{}}'],
  ['second arguments', '{"id":1,"method":"a","params":{"arguments":{},"arguments":{}}}'],
  ['a second _meta', '{"id":1,"method":"a","params":{"_meta":{},"_meta":{}}}'],
  [
    'a second clientInfo',
    `{"id":1,"method":"a","params":{"_meta":{"${CLIENT_INFO_KEY}":{},"${CLIENT_INFO_KEY}":{}}}}`,
  ],
  ['Name beside name', '{"id":1,"method":"m","params":{"name":"a","Name":"b"}}'],
  ['METHOD beside method', '{"id":1,"method":"a","METHOD":"b"}'],
  ['a long s in params', '{"id":1,"method":"a","params":{},"paramſ":{}}'],
  ['an escaped long s in arguments', '{"id":1,"method":"a","params":{"argument\\u017f":{}}}'],
  [
    'a Kelvin sign in the progress token',
    '{"id":1,"method":"a","params":{"_meta":{"progressTo\u212Aen":1}}}',
  ],
];

for (const [what, text] of refused) {
  test(`a body with ${what} is refused, since two parsers would read it differently`, () => {
    assert.throws(
      () => locateRequest(Buffer.from(text)),
      (error) => error instanceof FairleadError && error.code === 'INVALID_REQUEST',
    );
  });
}

const accepted: readonly (readonly [what: string, body: string])[] = [
  ['unknown keys twice', '{"id":1,"method":"a","x":1,"x":2,"params":{"y":1,"y":2}}'],
  [
    'watched keys in other objects',
    '{"id":1,"method":"a","params":{"name":"a","arguments":{"name":1,"Name":2,"id":3}}}',
  ],
  ['params that are a list', '{"id":1,"method":"a","params":[1]}'],
  ['_meta that is null', '{"id":1,"method":"a","params":{"name":"a","_meta":null}}'],
  ['a key in other alphabets', '{"id":1,"method":"a","ключ":1,"params":{"\\ud83d":1}}'],
];

for (const [what, text] of accepted) {
  test(`a body with ${what} is located`, () => assert.ok(locateRequest(Buffer.from(text)).id));
}

for (const text of [
  '',
  '{',
  '{"a"',
  '{"a":',
  '{"a":1',
  '{"a":1,',
  '{"a":"x',
  '[]',
  'null',
  '{"a":{',
  '{"a":[}',
  '{"id":1,"params":{"name"}}',
]) {
  test(`${JSON.stringify(text)} is refused, and the scan ends`, () => {
    assert.throws(
      () => locateRequest(Buffer.from(text)),
      (error) => error instanceof FairleadError && error.code === 'INVALID_REQUEST',
    );
  });
}

const jsonText = fc
  .tuple(fc.json({ maxDepth: 4 }), fc.constantFrom(undefined, 1, '\t'))
  .map(([json, indent]) => JSON.stringify(JSON.parse(json), null, indent));
const objectText = fc
  .tuple(
    fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue(), { maxKeys: 8 }),
    fc.constantFrom(undefined, 2, '\r\n'),
  )
  .map(([value, indent]) => JSON.stringify(value, null, indent));

test('the members of any object are those that JSON.parse sees, in its order and with its values', () => {
  fc.assert(
    fc.property(objectText, (text) => {
      const seen = readMembers(text, valueStartOf(text)).map((member) => [
        member.key,
        JSON.parse(text.slice(member.valueStart, member.end)),
      ]);
      const parsed: unknown = JSON.parse(text);
      assert.deepEqual(Object.fromEntries(seen), parsed);
      assert.equal(seen.length, Object.keys(parsed as object).length);
    }),
    { numRuns: 500 },
  );
});

test('any part of any request can be replaced, in bytes and in text alike, and JSON.parse sees exactly that', () => {
  const request = fc.record({
    id: fc.jsonValue(),
    method: fc.string({ unit: 'binary' }),
    params: fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()),
  });
  fc.assert(
    fc.property(
      request,
      fc.constantFrom('id', 'method', 'params'),
      jsonText,
      (message, key, replacement) => {
        const text = JSON.stringify(message);
        const bytes = Buffer.from(text);
        let span: Span | undefined;
        try {
          span = locateRequest(bytes)[key as 'id' | 'method' | 'params'];
        } catch (error) {
          assert.ok(error instanceof FairleadError);
          return;
        }
        assert.ok(span);
        const expected = { ...message, [key]: JSON.parse(replacement) as unknown };
        assert.deepEqual(
          JSON.parse(splice(bytes, [{ ...span, text: replacement }]).toString('utf8')),
          JSON.parse(JSON.stringify(expected)),
        );
        const member = memberOf(readMembers(text, 0), key);
        assert.ok(member);
        assert.deepEqual(
          JSON.parse(
            spliceText(text, [{ start: member.valueStart, end: member.end, text: replacement }]),
          ),
          JSON.parse(JSON.stringify(expected)),
        );
      },
    ),
    { numRuns: 500 },
  );
});

test('the scan of any text ends, with members or with a syntax error', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', ' ', 'a', '1') }),
      (text) => {
        const start = valueStartOf(text);
        if (!isObjectAt(text, start)) return;
        try {
          readMembers(text, start);
        } catch (error) {
          assert.ok(error instanceof SyntaxError);
        }
      },
    ),
    { numRuns: 2_000 },
  );
});
