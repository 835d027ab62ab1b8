// Says in plain words what a zod issue means for somebody who wrote YAML. Never repeats the value.

import type { z } from 'zod';

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'must be a string (numbers and true/false need quotes)',
  int: 'must be a whole number',
  number: 'must be a whole number',
  boolean: 'must be true or false',
  array: 'must be a list',
  object: 'must be an object',
  record: 'must be an object',
};

export function describeIssue(issue: z.core.$ZodIssue, isMissing: boolean): string {
  if (isMissing) return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      return TYPE_WORDS[issue.expected] ?? `must be of type ${issue.expected}`;
    case 'invalid_value':
      return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(', ')}`;
    case 'too_small':
      return bound('at least', issue.origin, Number(issue.minimum));
    case 'too_big':
      return bound('at most', issue.origin, Number(issue.maximum));
    default:
      return issue.message;
  }
}

function bound(word: 'at least' | 'at most', origin: string, limit: number): string {
  if (origin === 'number' || origin === 'int') return `must be ${word} ${limit}`;
  if (limit === 1 && word === 'at least') return 'must not be empty';
  return `must have ${word} ${limit} ${origin === 'array' ? 'items' : 'characters'}`;
}
