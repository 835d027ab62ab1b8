// The building blocks of both kinds: every field is bounded and described, so that the API
// server can bound the cost of its rules and `kubectl explain` can explain it.
//
// Only forms that a structural schema can say; structural-schema.ts refuses anything else.

import { z } from 'zod';

import { celRaw, withRules } from './rule.ts';
import type { ListKind, Rule } from './rule.ts';

export const DNS_SUBDOMAIN_PATTERN =
  '^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$';
export const DNS_LABEL_PATTERN = '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$';
export const LABEL_VALUE_PATTERN = '^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$';
export const LABEL_KEY_PATTERN =
  '^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$';

export interface TextBounds {
  readonly max: number;
  readonly min?: number;
  readonly pattern?: string;
  /** What the pattern means, for people. */
  readonly hint?: string;
  readonly form?: 'duration' | 'URL' | 'host rule';
}

export function text(description: string, bounds: TextBounds): z.ZodString {
  const { max, min = 1, pattern, hint, form } = bounds;
  const base = z.string().min(min).max(max);
  const schema =
    pattern === undefined ? base : base.regex(new RegExp(pattern), hint ?? `must match ${pattern}`);
  return schema.meta({
    description,
    ...(hint === undefined ? {} : { patternHint: hint }),
    ...(form === undefined ? {} : { form }),
  });
}

export function int(description: string, min: number, max: number): z.ZodInt {
  return z.int().min(min).max(max).describe(description);
}

export function flag(description: string): z.ZodBoolean {
  return z.boolean().describe(description);
}

export function choice<const T extends readonly [string, ...string[]]>(
  description: string,
  values: T,
): z.ZodEnum<{ [K in T[number]]: K }> {
  return z.enum(values).describe(description) as z.ZodEnum<{ [K in T[number]]: K }>;
}

export function object<const S extends z.core.$ZodLooseShape>(
  description: string,
  shape: S,
): z.ZodObject<S, z.core.$strict> {
  return z.strictObject(shape).describe(description) as unknown as z.ZodObject<S, z.core.$strict>;
}

export interface ListBounds {
  readonly max: number;
  readonly min?: number;
  readonly kind: ListKind;
}

export const ATOMIC: ListKind = { kind: 'atomic' };
export const SET: ListKind = { kind: 'set' };

export function mapBy(...keys: string[]): ListKind {
  return { kind: 'map', keys };
}

export function list<T extends z.ZodType>(
  description: string,
  item: T,
  bounds: ListBounds,
): z.ZodArray<T> {
  const base = z.array(item).max(bounds.max);
  const schema = bounds.min === undefined ? base : base.min(bounds.min);
  return schema.meta({ description, listKind: bounds.kind });
}

export function dnsSubdomain(description: string): z.ZodString {
  return text(description, {
    max: 253,
    pattern: DNS_SUBDOMAIN_PATTERN,
    hint: 'must be lower-case letters, digits, "-" and ".", beginning and ending with a letter or digit',
  });
}

export function dnsLabel(description: string): z.ZodString {
  return text(description, {
    max: 63,
    pattern: DNS_LABEL_PATTERN,
    hint: 'must be lower-case letters, digits and "-", beginning and ending with a letter or digit',
  });
}

const labelKeys: Rule<Record<string, string>> = {
  cel: `self.all(key, size(key) <= 317 && key.matches(${celRaw(LABEL_KEY_PATTERN)}))`,
  message: 'must have keys that are Kubernetes label keys, like "app" or "example.com/team"',
  check: (labels) =>
    Object.keys(labels).every(
      (key) => key.length <= 317 && new RegExp(LABEL_KEY_PATTERN).test(key),
    ),
};

/** Labels that must all be there; empty is refused, since it would select everything. */
export function matchLabels(description: string): z.ZodRecord<z.ZodString, z.ZodString> {
  const value = text('A label value.', {
    min: 0,
    max: 63,
    pattern: LABEL_VALUE_PATTERN,
    hint: 'must be a Kubernetes label value: letters, digits, "-", "_" and "."',
  });
  return withRules(
    z.record(z.string(), value).meta({ description, minProperties: 1, maxProperties: 16 }),
    [labelKeys],
  );
}
