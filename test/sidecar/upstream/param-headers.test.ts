import assert from 'node:assert/strict';
import { test } from 'node:test';

import { appendParamHeaders, scanParamHeaders } from '#sidecar/upstream/param-headers.ts';

const region = { type: 'string', 'x-mcp-header': 'Region' };

test('annotations at any depth below properties give a header and its path (R54)', () => {
  const scan = scanParamHeaders({
    type: 'object',
    properties: {
      region,
      options: {
        type: 'object',
        properties: { dry: { type: ['boolean', 'null'], 'x-mcp-header': 'Dry-Run' } },
      },
    },
  });
  assert.deepEqual(scan, {
    kind: 'ok',
    headers: [
      { header: 'Mcp-Param-Region', path: ['region'] },
      { header: 'Mcp-Param-Dry-Run', path: ['options', 'dry'] },
    ],
  });
});

const good: readonly (readonly [what: string, schema: object])[] = [
  [
    'a property that is called x-mcp-header',
    { properties: { 'x-mcp-header': { type: 'string' } } },
  ],
  [
    'a default value that looks like an annotation',
    { properties: { a: { type: 'object', default: { 'x-mcp-header': 'A' } } } },
  ],
  ['an enum that looks like an annotation', { enum: [{ 'x-mcp-header': 'A' }] }],
];

for (const [what, schema] of good) {
  test(`${what} is no annotation`, () =>
    assert.deepEqual(scanParamHeaders(schema), { kind: 'ok', headers: [] }));
}

const bad: readonly (readonly [what: string, schema: object, reason: RegExp])[] = [
  [
    'an empty name',
    { properties: { a: { type: 'string', 'x-mcp-header': '' } } },
    /not a header name/,
  ],
  [
    'a name with a line feed',
    { properties: { a: { type: 'string', 'x-mcp-header': 'A\r\nB' } } },
    /not a header name/,
  ],
  [
    'a name with a space',
    { properties: { a: { type: 'string', 'x-mcp-header': 'A B' } } },
    /not a header name/,
  ],
  [
    'a name that is no string',
    { properties: { a: { type: 'string', 'x-mcp-header': 7 } } },
    /not a header name/,
  ],
  [
    'the type number',
    { properties: { a: { type: 'number', 'x-mcp-header': 'A' } } },
    /string, integer or boolean/,
  ],
  [
    'the type object',
    { properties: { a: { type: 'object', 'x-mcp-header': 'A' } } },
    /string, integer or boolean/,
  ],
  ['no type', { properties: { a: { 'x-mcp-header': 'A' } } }, /string, integer or boolean/],
  [
    'two types',
    { properties: { a: { type: ['string', 'integer'], 'x-mcp-header': 'A' } } },
    /string, integer or boolean/,
  ],
  [
    'the same name in another case',
    { properties: { a: region, b: { type: 'string', 'x-mcp-header': 'REGION' } } },
    /repeats/,
  ],
  ['the root', { 'x-mcp-header': 'A', type: 'string' }, /reached/],
  ['array items', { properties: { a: { type: 'array', items: region } } }, /reached/],
  ['a list of items', { properties: { a: { prefixItems: [region] } } }, /reached/],
  ['a branch of oneOf', { oneOf: [{ properties: { region } }] }, /reached/],
  [
    'a branch of then',
    JSON.parse(
      '{"then":{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}',
    ) as object,
    /reached/,
  ],
  ['a definition', { $defs: { r: region } }, /reached/],
  ['additional properties', { additionalProperties: region }, /reached/],
  ['a pattern property', { patternProperties: { '^a': region } }, /reached/],
];

for (const [what, schema, reason] of bad) {
  test(`an annotation with or at ${what} makes the schema invalid`, () => {
    const scan = scanParamHeaders(schema);
    assert.equal(scan.kind, 'invalid');
    assert.match(scan.kind === 'invalid' ? scan.reason : '', reason);
  });
}

test('a schema without end is refused, not followed', () => {
  let schema: object = region;
  for (let depth = 0; depth < 5_000; depth++) schema = { properties: { a: schema } };
  assert.equal(scanParamHeaders(schema).kind, 'invalid');
});

const values: readonly (readonly [what: string, args: unknown, expected: readonly string[]])[] = [
  ['a string', { a: 'us' }, ['Mcp-Param-A', 'us']],
  ['an empty string', { a: '' }, ['Mcp-Param-A', '']],
  ['true', { a: true }, ['Mcp-Param-A', 'true']],
  ['a negative integer', { a: -7 }, ['Mcp-Param-A', '-7']],
  ['a line feed', { a: 'a\nb' }, ['Mcp-Param-A', '=?base64?YQpi?=']],
  ['null', { a: null }, []],
  ['an absent argument', {}, []],
  ['absent arguments', undefined, []],
  ['an integer that is not exact', { a: 2 ** 53 }, []],
  ['an object', { a: {} }, []],
  ['an inherited property', Object.create({ a: 'x' }), []],
];

for (const [what, args, expected] of values) {
  test(`${what} gives ${expected.length === 0 ? 'no header' : `the value ${JSON.stringify(expected[1])}`}`, () => {
    const headers: string[] = [];
    appendParamHeaders(headers, [{ header: 'Mcp-Param-A', path: ['a'] }], args);
    assert.deepEqual(headers, expected);
  });
}
