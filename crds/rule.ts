// A rule between the fields of one object, written once: the CEL text that the API server runs
// and the TypeScript check that offline validation runs stand side by side, with one message and
// one path, so that both give the same verdict.
//
// A rule never reads another object, and never reports the value that it refuses.

import type { z } from 'zod';

/** What may differ offline: `fairlead dev` accepts loopback remotes over plain http. */
export interface RuleOptions {
  readonly development: boolean;
}

export type RuleReason =
  | 'FieldValueInvalid'
  | 'FieldValueRequired'
  | 'FieldValueForbidden'
  | 'FieldValueDuplicate';

export interface Rule<T> {
  /** True when the value is in order. `self` is the value at the schema that carries the rule. */
  readonly cel: string;
  /** Says what must be, without the value. */
  readonly message: string;
  /** The field to blame, below the schema that carries the rule: `.oauth.issuer`. */
  readonly path?: string;
  readonly reason?: RuleReason;
  /** The twin of `cel`, on the value after defaulting. */
  check(value: T, options: RuleOptions): boolean;
}

/** How server-side apply merges a list, and what the API server compares for uniqueness. */
export type ListKind =
  | { readonly kind: 'atomic' }
  | { readonly kind: 'set' }
  | { readonly kind: 'map'; readonly keys: readonly string[] };

declare module 'zod' {
  interface GlobalMeta {
    rules?: readonly Rule<unknown>[];
    listKind?: ListKind;
    minProperties?: number;
    maxProperties?: number;
    /** A form that the documentation explains once. */
    form?: 'duration' | 'URL' | 'host rule';
    /** Offline message in place of "must match ...". */
    patternHint?: string;
  }
}

/** The schema with these rules after those that it already has. */
export function withRules<S extends z.ZodType>(schema: S, rules: readonly Rule<z.output<S>>[]): S {
  const meta = schema.meta() ?? {};
  // The registry can't keep the value's type; check-rules.ts passes each rule the value of its own schema.
  const all = [...(meta.rules ?? []), ...rules] as readonly Rule<unknown>[];
  return schema.meta({ ...meta, rules: all });
}

/** A CEL string literal that needs no escapes, for patterns. */
export function celRaw(text: string): string {
  if (text.includes('"')) throw new TypeError('a raw CEL string must not contain a double quote');
  return `r"${text}"`;
}
