import assert from 'node:assert/strict';
import { test } from 'node:test';

import { presentTool, wrapsOutput } from '#sidecar/upstream/bridge-tools.ts';

const plain = {
  name: 'a',
  inputSchema: { type: 'object' },
  outputSchema: { type: 'object' },
  execution: { taskSupport: 'optional' },
  vendor: { x: 1 },
};

test("within one era a definition is the server's own object", () => {
  assert.equal(presentTool(plain, 'legacy', 'legacy'), plain);
  assert.equal(presentTool(plain, 'modern', 'modern'), plain);
});

test('towards a modern agent execution goes, unknown members stay', () => {
  const { execution: _, ...expected } = plain;
  assert.deepEqual(presentTool(plain, 'legacy', 'modern'), expected);
});

test('towards a legacy agent an object schema stays as it is', () => {
  assert.equal(presentTool(plain, 'modern', 'legacy'), plain);
  assert.equal(wrapsOutput(plain), false);
});

test('towards a legacy agent another output schema is wrapped, and its pointers follow', () => {
  const outputSchema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'array',
    items: { $ref: '#/$defs/item' },
    default: { $ref: '#/kept' },
    $defs: {
      item: {
        properties: {
          $ref: { type: 'string' },
          next: { $ref: '#' },
          other: { $ref: 'https://example.com/#/a' },
          default: { $dynamicRef: '#/$defs/item' },
        },
      },
      own: { $id: 'https://example.com/own', $ref: '#/here' },
      anchor: { $id: '#anchor', $ref: '#/$defs/item' },
    },
  };
  const moved = {
    $schema: outputSchema.$schema,
    type: 'object',
    properties: {
      result: {
        ...outputSchema,
        items: { $ref: '#/properties/result/$defs/item' },
        $defs: {
          item: {
            properties: {
              $ref: { type: 'string' },
              next: { $ref: '#/properties/result' },
              other: { $ref: 'https://example.com/#/a' },
              default: { $dynamicRef: '#/properties/result/$defs/item' },
            },
          },
          own: outputSchema.$defs.own,
          anchor: { $id: '#anchor', $ref: '#/properties/result/$defs/item' },
        },
      },
    },
    required: ['result'],
  };
  const tool = { ...plain, outputSchema };
  assert.equal(wrapsOutput(tool), true);
  assert.deepEqual(presentTool(tool, 'modern', 'legacy'), { ...plain, outputSchema: moved });
});

test('a tool without an output schema is not wrapped', () => {
  assert.equal(wrapsOutput({ name: 'a' }), false);
  assert.equal(wrapsOutput({ name: 'a', outputSchema: true }), false);
});
