// What the API server does to an object before it looks at any value: fields that the schema does
// not have are removed (and named, since strict callers refuse them), and nulls of fields that
// cannot be null are removed, so that their defaults apply.

import type { StructuralSchema } from './structural-schema.ts';

export interface PrunedValue {
  readonly value: unknown;
  /** Paths of the fields that the schema does not have. */
  readonly unknownFields: readonly string[];
}

export function pruneObject(schema: StructuralSchema, input: unknown, path: string): PrunedValue {
  const unknownFields: string[] = [];
  const value = prune(schema, input, path, unknownFields);
  return { value, unknownFields };
}

function prune(
  schema: StructuralSchema,
  input: unknown,
  ...[path, unknownFields]: [string, string[]]
): unknown {
  if (Array.isArray(input)) {
    const { items } = schema;
    return items === undefined
      ? input
      : input.map((item, index) => prune(items, item, `${path}[${index}]`, unknownFields));
  }
  if (!isPlainObject(input) || schema.type !== 'object') return input;
  const kept: [string, unknown][] = [];
  for (const [key, member] of Object.entries(input)) {
    const memberSchema = memberOf(schema, key);
    if (memberSchema === undefined) unknownFields.push(`${path}.${key}`);
    else if (member !== null)
      kept.push([key, prune(memberSchema, member, `${path}.${key}`, unknownFields)]);
  }
  return Object.fromEntries(kept);
}

function memberOf(schema: StructuralSchema, key: string): StructuralSchema | undefined {
  if (schema.properties !== undefined)
    return Object.hasOwn(schema.properties, key) ? schema.properties[key] : undefined;
  return schema.additionalProperties;
}

export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
