// Turns a zod schema into the structural schema of a CRD, and fails on everything that a
// structural schema cannot say or the API server cannot bound: unions, transforms, refinements
// (a rule belongs in withRules), loose objects, unbounded strings, lists and maps, patterns that
// RE2 reads differently, fields without a description.
//
// The result carries the rules with their TypeScript checks; crdSchema() drops those and writes
// what the API server takes.

import type { z } from 'zod';
import { globalRegistry } from 'zod';

import { re2Fault } from './re2-pattern.ts';
import type { ListKind, Rule } from './rule.ts';

export interface StructuralSchema {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'boolean';
  readonly description?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly patternHint?: string;
  readonly form?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly required?: readonly string[];
  readonly items?: StructuralSchema;
  readonly additionalProperties?: StructuralSchema;
  readonly listKind?: ListKind;
  readonly rules?: readonly Rule<unknown>[];
}

export class NotStructuralError extends TypeError {
  override readonly name = 'NotStructuralError';

  constructor(path: string, problem: string) {
    super(`${path}: ${problem}`);
  }
}

interface Draft extends Partial<{ -readonly [K in keyof StructuralSchema]: StructuralSchema[K] }> {
  isOptional?: boolean;
}

type AnySchema = z.core.$ZodType;
type Definition<T extends z.core.$ZodTypeDef = z.core.$ZodTypeDef> = T;

/** `path` names the schema in errors: `McpServer.spec`. */
export function structuralSchema(schema: AnySchema, path: string): StructuralSchema {
  const { isOptional: _, ...converted } = convert(schema, path);
  return converted as StructuralSchema;
}

function convert(schema: AnySchema, path: string): Draft {
  const meta = globalRegistry.get(schema) ?? {};
  const draft = convertType(schema, path);
  if (meta.description !== undefined) draft.description = meta.description;
  if (meta.rules !== undefined) draft.rules = meta.rules;
  if (meta.patternHint !== undefined) draft.patternHint = meta.patternHint;
  if (meta.form !== undefined) draft.form = meta.form;
  return draft;
}

function convertType(schema: AnySchema, path: string): Draft {
  const def = schema._zod.def as Definition;
  switch (def.type) {
    case 'optional':
      return { ...convert((def as z.core.$ZodOptionalDef).innerType, path), isOptional: true };
    case 'default':
    case 'prefault':
      return convertDefault(def as z.core.$ZodDefaultDef, path);
    case 'object':
      return convertObject(def as z.core.$ZodObjectDef, path);
    case 'array':
      return convertArray(schema, def as z.core.$ZodArrayDef, path);
    case 'record':
      return convertRecord(schema, def as z.core.$ZodRecordDef, path);
    case 'string':
      return convertString(def as z.core.$ZodStringDef, path);
    case 'number':
      return convertNumber(def as z.core.$ZodNumberDef, path);
    case 'boolean':
      noChecks(def, path);
      return { type: 'boolean' };
    case 'enum':
      return convertEnum(def as z.core.$ZodEnumDef, path);
    default:
      throw new NotStructuralError(path, `${def.type} has no structural form`);
  }
}

function convertDefault(def: z.core.$ZodDefaultDef, path: string): Draft {
  if (!isJson(def.defaultValue))
    throw new NotStructuralError(path, 'the default is not plain JSON');
  return { ...convert(def.innerType, path), default: def.defaultValue, isOptional: true };
}

function isJson(value: unknown): boolean {
  return (
    JSON.stringify(value) !== undefined &&
    JSON.stringify(JSON.parse(JSON.stringify(value))) === JSON.stringify(value)
  );
}

function convertObject(def: z.core.$ZodObjectDef, path: string): Draft {
  noChecks(def, path);
  // Only z.strictObject: what is not declared is refused or pruned, in the CRD and offline alike.
  if (def.catchall?._zod.def.type !== 'never')
    throw new NotStructuralError(path, 'the object must be strict');
  const properties: Record<string, StructuralSchema> = {};
  const required: string[] = [];
  for (const [name, member] of Object.entries(def.shape)) {
    const { isOptional = false, ...property } = convert(member, `${path}.${name}`);
    if (property.description === undefined)
      throw new NotStructuralError(`${path}.${name}`, 'has no description');
    properties[name] = property as StructuralSchema;
    if (!isOptional) required.push(name);
  }
  return required.length === 0
    ? { type: 'object', properties }
    : { type: 'object', required, properties };
}

function convertArray(schema: AnySchema, def: z.core.$ZodArrayDef, path: string): Draft {
  const draft: Draft = { type: 'array', items: convertElement(def.element, `${path}[]`) };
  for (const check of checksOf(def)) {
    if (check.check === 'min_length')
      draft.minItems = (check as z.core.$ZodCheckMinLengthDef).minimum;
    else if (check.check === 'max_length')
      draft.maxItems = (check as z.core.$ZodCheckMaxLengthDef).maximum;
    else throw new NotStructuralError(path, `${check.check} has no structural form`);
  }
  const { listKind } = globalRegistry.get(schema) ?? {};
  if (draft.maxItems === undefined)
    throw new NotStructuralError(path, 'the list has no maximum length');
  if (listKind === undefined) throw new NotStructuralError(path, 'the list has no list type');
  checkListKeys(listKind, draft.items, path);
  return { ...draft, listKind };
}

/** The API server finds an item by its keys, so each must always be there. */
function checkListKeys(
  listKind: ListKind,
  items: StructuralSchema | undefined,
  path: string,
): void {
  if (listKind.kind !== 'map') return;
  const missing = listKind.keys.find((key) => !items?.required?.includes(key));
  if (missing !== undefined)
    throw new NotStructuralError(path, `list key ${missing} is not a required field of the items`);
}

function convertElement(schema: AnySchema, path: string): StructuralSchema {
  const { isOptional = false, ...element } = convert(schema, path);
  if (isOptional) throw new NotStructuralError(path, 'items cannot be optional or have a default');
  return element as StructuralSchema;
}

function convertRecord(schema: AnySchema, def: z.core.$ZodRecordDef, path: string): Draft {
  noChecks(def, path);
  const key = def.keyType._zod.def;
  if (key.type !== 'string' || checksOf(key).length > 0)
    throw new NotStructuralError(path, 'keys must be plain strings (a rule may judge them)');
  const { minProperties, maxProperties } = globalRegistry.get(schema) ?? {};
  if (maxProperties === undefined)
    throw new NotStructuralError(path, 'the map has no maximum size');
  const draft: Draft = {
    type: 'object',
    maxProperties,
    additionalProperties: convertElement(def.valueType, `${path}{}`),
  };
  return minProperties === undefined ? draft : { ...draft, minProperties };
}

function convertString(def: z.core.$ZodStringDef, path: string): Draft {
  const format = (def as { format?: string }).format;
  if (format === 'datetime') return { type: 'string', format: 'date-time' };
  if (format !== undefined)
    throw new NotStructuralError(path, `string format ${format} has no structural form`);
  const draft: Draft = { type: 'string' };
  for (const check of checksOf(def)) {
    if (check.check === 'min_length')
      draft.minLength = (check as z.core.$ZodCheckMinLengthDef).minimum;
    else if (check.check === 'max_length')
      draft.maxLength = (check as z.core.$ZodCheckMaxLengthDef).maximum;
    else if (isRegexCheck(check)) draft.pattern = patternOf(check, draft, path);
    else throw new NotStructuralError(path, `${check.check} has no structural form`);
  }
  if (draft.maxLength === undefined)
    throw new NotStructuralError(path, 'the string has no maximum length');
  return draft;
}

function isRegexCheck(check: z.core.$ZodCheckDef): check is z.core.$ZodCheckRegexDef {
  return (
    check.check === 'string_format' && (check as z.core.$ZodCheckStringFormatDef).format === 'regex'
  );
}

function patternOf(check: z.core.$ZodCheckRegexDef, draft: Draft, path: string): string {
  if (draft.pattern !== undefined)
    throw new NotStructuralError(path, 'only one pattern is possible');
  if (check.pattern.flags !== '')
    throw new NotStructuralError(path, 'the pattern must have no flags');
  const fault = re2Fault(check.pattern.source);
  if (fault !== undefined) throw new NotStructuralError(path, `the pattern ${fault}`);
  // RegExp.source escapes "/", which RE2 does not need.
  return check.pattern.source.replaceAll('\\/', '/');
}

function convertNumber(def: z.core.$ZodNumberDef, path: string): Draft {
  if ((def as { format?: string }).format !== 'safeint')
    throw new NotStructuralError(path, 'only integers are allowed');
  const draft: Draft = { type: 'integer' };
  for (const check of checksOf(def)) {
    const bound = check as z.core.$ZodCheckLessThanDef;
    if (check.check === 'greater_than' && bound.inclusive) draft.minimum = Number(bound.value);
    else if (check.check === 'less_than' && bound.inclusive) draft.maximum = Number(bound.value);
    else if (check.check !== 'number_format')
      throw new NotStructuralError(path, `${check.check} has no structural form`);
  }
  if (draft.minimum === undefined) throw new NotStructuralError(path, 'the integer has no minimum');
  return {
    ...draft,
    format: draft.maximum === undefined || draft.maximum > 2 ** 31 - 1 ? 'int64' : 'int32',
  };
}

function convertEnum(def: z.core.$ZodEnumDef, path: string): Draft {
  noChecks(def, path);
  const values = Object.values(def.entries);
  if (!values.every((value) => typeof value === 'string'))
    throw new NotStructuralError(path, 'enum values must be strings');
  return { type: 'string', enum: values };
}

function checksOf(def: Definition): readonly z.core.$ZodCheckDef[] {
  return (def.checks ?? []).map((check) => check._zod.def);
}

function noChecks(def: Definition, path: string): void {
  const [check] = checksOf(def);
  if (check !== undefined)
    throw new NotStructuralError(path, `${check.check} has no structural form`);
}
