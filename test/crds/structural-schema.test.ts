// The converter's job is to fail: whatever a structural schema cannot say must not slip through.

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { z } from 'zod';

import { crdSchema } from '#crds/crd-schema.ts';
import {
  ATOMIC,
  SET,
  choice,
  flag,
  int,
  list,
  mapBy,
  matchLabels,
  object,
  text,
} from '#crds/field-schemas.ts';
import { withRules } from '#crds/rule.ts';
import { NotStructuralError, structuralSchema } from '#crds/structural-schema.ts';

const word = (): z.ZodString => text('A word.', { max: 8, pattern: '^[a-z/]+$' });

test('objects, lists, maps, enums, defaults and rules become structural', () => {
  const schema = withRules(
    object('All forms.', {
      name: word(),
      count: int('A count.', 1, 10).default(3),
      big: int('A big count.', 0, 2 ** 40).optional(),
      on: flag('On?').default(false),
      mode: choice('The mode.', ['A', 'B']),
      words: list('Words.', word(), { min: 1, max: 4, kind: SET }),
      items: list('Items.', object('An item.', { key: word() }), {
        max: 4,
        kind: mapBy('key'),
      }).default([]),
      labels: matchLabels('Labels.').optional(),
      nested: object('Nested.', { on: flag('On?').default(true) }).prefault({}),
    }),
    [
      {
        cel: 'self.count > 1',
        message: 'must be more than 1',
        path: '.count',
        reason: 'FieldValueForbidden',
        check: ({ count }) => count > 1,
      },
    ],
  );
  const converted = crdSchema(structuralSchema(schema, 'Test'));
  assert.deepEqual(
    { ...converted, properties: undefined },
    {
      type: 'object',
      description: 'All forms.',
      required: ['name', 'mode', 'words'],
      properties: undefined,
      'x-kubernetes-validations': [
        {
          rule: 'self.count > 1',
          message: 'must be more than 1',
          fieldPath: '.count',
          reason: 'FieldValueForbidden',
        },
      ],
    },
  );
  const properties = converted['properties'] as Readonly<
    Record<string, Readonly<Record<string, unknown>>>
  >;
  assert.deepEqual(properties['name'], {
    type: 'string',
    description: 'A word.',
    maxLength: 8,
    minLength: 1,
    pattern: '^[a-z/]+$',
  });
  assert.deepEqual(properties['count'], {
    type: 'integer',
    description: 'A count.',
    default: 3,
    format: 'int32',
    maximum: 10,
    minimum: 1,
  });
  assert.equal(properties['big']?.['format'], 'int64');
  assert.deepEqual(properties['mode'], {
    type: 'string',
    description: 'The mode.',
    enum: ['A', 'B'],
  });
  assert.equal(properties['words']?.['x-kubernetes-list-type'], 'set');
  assert.deepEqual(properties['items']?.['x-kubernetes-list-map-keys'], ['key']);
  assert.equal(properties['labels']?.['minProperties'], 1);
  assert.deepEqual(properties['nested']?.['default'], {});
});

suite('the converter refuses', () => {
  const rows: readonly (readonly [string, z.ZodType, RegExp])[] = [
    ['unions', z.union([word(), flag('F.')]), /Test\.field: union/],
    [
      'discriminated unions',
      z.discriminatedUnion('t', [z.strictObject({ t: z.literal('a') })]),
      /union/,
    ],
    ['literals', z.literal('a'), /literal/],
    ['nullable fields', word().nullable(), /nullable/],
    ['anything', z.any(), /any/],
    ['unknown values', z.unknown(), /unknown/],
    ['transforms', word().transform(Number), /pipe/],
    ['dates', z.date(), /date/],
    ['bigints', z.bigint(), /bigint/],
    ['tuples', z.tuple([word()]), /tuple/],
    ['refinements', word().refine(() => true), /custom/],
    ['trimming', z.string().max(3).trim(), /overwrite/],
    ['unbounded strings', z.string(), /no maximum length/],
    ['unbounded lists', z.array(word()), /no maximum length/],
    ['lists without a list type', z.array(word()).max(3), /no list type/],
    [
      'lists by a key that may be absent',
      list('L.', object('I.', { key: word().optional() }), { max: 3, kind: mapBy('key') }),
      /not a required field/,
    ],
    [
      'items with a default',
      list('L.', word().default('a'), { max: 3, kind: ATOMIC }),
      /items cannot/,
    ],
    ['unbounded maps', z.record(z.string(), word()), /no maximum size/],
    ['maps with judged keys', z.record(z.string().max(3), word()), /keys must be plain strings/],
    ['fractions', z.number(), /only integers/],
    ['unbounded integers', z.int(), /no minimum/],
    ['exclusive bounds', z.int().gt(1), /greater_than/],
    ['multiples', z.int().min(0).multipleOf(2), /multiple_of/],
    ['loose objects', z.looseObject({}), /must be strict/],
    ['plain objects', z.object({}), /must be strict/],
    [
      'fields without description',
      z.strictObject({ a: z.boolean() }),
      /Test\.field\.a: has no description/,
    ],
    ['string formats', z.email(), /format email/],
    ['patterns with flags', z.string().max(3).regex(/^a$/i), /no flags/],
    [
      'patterns that RE2 reads differently',
      z
        .string()
        .max(3)
        .regex(/^(?=a).$/),
      /look-around/,
    ],
    ['two patterns', z.string().max(3).regex(/^a$/).regex(/^b$/), /only one pattern/],
    [
      'defaults that are no JSON',
      z.boolean().default(undefined as unknown as boolean),
      /not plain JSON/,
    ],
  ];
  for (const [what, field, expected] of rows) {
    test(what, () => {
      const schema = z.strictObject({
        field: field.meta()?.description === undefined ? field.describe('A field.') : field,
      });
      assert.throws(
        () => structuralSchema(schema, 'Test'),
        (error) => error instanceof NotStructuralError && expected.test(error.message),
      );
    });
  }
});
