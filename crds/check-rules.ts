// What the API server checks after types and bounds, on the value with its defaults: lists that
// are sets or maps hold nothing twice, maps have their sizes, and every rule holds. Assumes that
// the value has passed the zod schema that the structural schema was made from.

import { isPlainObject } from './prune-object.ts';
import type { ListKind, RuleOptions } from './rule.ts';
import type { StructuralSchema } from './structural-schema.ts';

export interface RuleFault {
  readonly path: string;
  readonly message: string;
}

export function* checkRules(
  schema: StructuralSchema,
  value: unknown,
  at: { readonly path: string; readonly options: RuleOptions },
): Generator<RuleFault> {
  const { path, options } = at;
  for (const rule of schema.rules ?? []) {
    if (!rule.check(value, options))
      yield { path: path + (rule.path ?? ''), message: rule.message };
  }
  if (Array.isArray(value)) yield* checkList(schema, value, at);
  else if (isPlainObject(value)) yield* checkObject(schema, value, at);
}

function* checkList(
  schema: StructuralSchema,
  items: readonly unknown[],
  at: Parameters<typeof checkRules>[2],
): Generator<RuleFault> {
  const seen = new Set<string>();
  for (const [index, item] of items.entries()) {
    const path = `${at.path}[${index}]`;
    const key = identityOf(schema.listKind, item);
    if (key !== undefined && seen.has(key)) yield { path, message: 'must not be there twice' };
    if (key !== undefined) seen.add(key);
    if (schema.items !== undefined) yield* checkRules(schema.items, item, { ...at, path });
  }
}

function identityOf(listKind: ListKind | undefined, item: unknown): string | undefined {
  if (listKind === undefined || listKind.kind === 'atomic') return undefined;
  if (listKind.kind === 'set') return JSON.stringify(item);
  return isPlainObject(item) ? JSON.stringify(listKind.keys.map((key) => item[key])) : undefined;
}

function* checkObject(
  schema: StructuralSchema,
  value: Readonly<Record<string, unknown>>,
  at: Parameters<typeof checkRules>[2],
): Generator<RuleFault> {
  const size = Object.keys(value).length;
  if (schema.minProperties !== undefined && size < schema.minProperties) {
    yield {
      path: at.path,
      message: `must have at least ${schema.minProperties} ${schema.minProperties === 1 ? 'entry' : 'entries'}`,
    };
  }
  if (schema.maxProperties !== undefined && size > schema.maxProperties) {
    yield { path: at.path, message: `must have at most ${schema.maxProperties} entries` };
  }
  for (const [name, member] of Object.entries(value)) {
    const memberSchema =
      schema.properties === undefined ? schema.additionalProperties : schema.properties[name];
    if (memberSchema !== undefined && member !== undefined)
      yield* checkRules(memberSchema, member, { ...at, path: `${at.path}.${name}` });
  }
}
