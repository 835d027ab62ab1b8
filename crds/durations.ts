// Durations as people write them in YAML: `30s`, `1m30s`, `1.5h`. The form and the arithmetic are
// those of Go's time.ParseDuration, which CEL's duration() uses, counted in nanoseconds so that
// both sides compare alike. No sign, no units other than ms, s, m, h.

import type { z } from 'zod';

import { text } from './field-schemas.ts';
import { withRules } from './rule.ts';
import type { Rule } from './rule.ts';

export const DURATION_PATTERN = '^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$';

const PATTERN = new RegExp(DURATION_PATTERN);
const PART = /([0-9]+)(?:\.([0-9]+))?(ms|s|m|h)/g;
const UNIT_NANOSECONDS: Readonly<Record<string, bigint>> = {
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

/** Undefined when the text is no duration. */
export function durationNanoseconds(duration: string): bigint | undefined {
  if (!PATTERN.test(duration)) return undefined;
  let total = 0n;
  for (const [, whole = '0', fraction = '', unit = 's'] of duration.matchAll(PART)) {
    const size = UNIT_NANOSECONDS[unit] ?? 0n;
    total += BigInt(whole) * size;
    if (fraction !== '') total += (BigInt(fraction) * size) / 10n ** BigInt(fraction.length);
  }
  return total;
}

/** Whole milliseconds of a valid duration, rounded to the nearest. */
export function durationMs(duration: string): number {
  const nanoseconds = durationNanoseconds(duration);
  if (nanoseconds === undefined)
    throw new TypeError('not a duration; it must pass the schema first');
  return Number((nanoseconds + 500_000n) / 1_000_000n);
}

export interface DurationBounds {
  readonly min: string;
  readonly max: string;
}

function within(bounds: DurationBounds): Rule<string> {
  const [min, max] = [bounds.min, bounds.max].map((bound) => durationNanoseconds(bound) ?? 0n) as [
    bigint,
    bigint,
  ];
  return {
    cel: `duration(self) >= duration('${bounds.min}') && duration(self) <= duration('${bounds.max}')`,
    message: `must be from ${bounds.min} to ${bounds.max}`,
    check: (value) => {
      const nanoseconds = durationNanoseconds(value);
      return nanoseconds === undefined || (nanoseconds >= min && nanoseconds <= max);
    },
  };
}

/** Time-outs: more than nothing, at most a day. */
export const TIMEOUT: DurationBounds = { min: '1ms', max: '24h' };

export function duration(description: string, bounds: DurationBounds): z.ZodString {
  const schema = text(description, {
    max: 16,
    pattern: DURATION_PATTERN,
    form: 'duration',
    hint: 'must be a duration like "500ms", "30s" or "1h30m"',
  });
  return withRules(schema, [within(bounds)]);
}

interface CallTimeouts {
  readonly requestTimeout?: string | undefined;
  readonly streamReadTimeout?: string | undefined;
}

/** The silence that a stream may keep is never shorter than the deadline of a whole plain call. */
export const streamNotShorterThanRequest: Rule<CallTimeouts> = {
  cel: '!has(self.streamReadTimeout) || !has(self.requestTimeout) || duration(self.streamReadTimeout) >= duration(self.requestTimeout)',
  message: 'must not be shorter than requestTimeout',
  path: '.streamReadTimeout',
  check: ({ requestTimeout, streamReadTimeout }) => {
    const request = durationNanoseconds(requestTimeout ?? '');
    const stream = durationNanoseconds(streamReadTimeout ?? '');
    return request === undefined || stream === undefined || stream >= request;
  },
};
