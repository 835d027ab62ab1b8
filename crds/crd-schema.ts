// Writes a structural schema as the API server takes it: OpenAPI v3 with x-kubernetes-*
// extensions, keys in a fixed order so that the generated files are stable.

import type { Rule } from './rule.ts';
import type { StructuralSchema } from './structural-schema.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

const COPIED = [
  'default',
  'enum',
  'format',
  'maxItems',
  'maxLength',
  'maxProperties',
  'maximum',
  'minItems',
  'minLength',
  'minProperties',
  'minimum',
  'pattern',
  'required',
] as const satisfies readonly (keyof StructuralSchema)[];

export function crdSchema(schema: StructuralSchema): JsonObject {
  const result: Record<string, unknown> = { type: schema.type };
  if (schema.description !== undefined) result['description'] = schema.description;
  for (const key of COPIED) if (schema[key] !== undefined) result[key] = schema[key];
  if (schema.properties !== undefined) {
    result['properties'] = Object.fromEntries(
      Object.entries(schema.properties).map(([name, member]) => [name, crdSchema(member)]),
    );
  }
  if (schema.items !== undefined) result['items'] = crdSchema(schema.items);
  if (schema.additionalProperties !== undefined)
    result['additionalProperties'] = crdSchema(schema.additionalProperties);
  if (schema.listKind !== undefined) {
    result['x-kubernetes-list-type'] = schema.listKind.kind;
    if (schema.listKind.kind === 'map') result['x-kubernetes-list-map-keys'] = schema.listKind.keys;
  }
  if (schema.rules !== undefined) result['x-kubernetes-validations'] = schema.rules.map(crdRule);
  return result;
}

function crdRule(rule: Rule<unknown>): JsonObject {
  return {
    rule: rule.cel,
    message: rule.message,
    ...(rule.path === undefined ? {} : { fieldPath: rule.path }),
    reason: rule.reason ?? 'FieldValueInvalid',
  };
}
