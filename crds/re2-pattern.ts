// Whether a pattern means the same to JavaScript and to Go's RE2, which the API server uses:
// no look-around, no back-references, no escapes that only one of them knows, no repetition
// beyond RE2's limit. Anything not known to be common to both is refused.

const RE2_MAX_REPEAT = 1000;
/** Escaped punctuation, and the classes that are ASCII in both. */
const COMMON_ESCAPES = /^[\\^$.*+?()[\]{}|/dDwW-]$/;

/** Looked for with every escaped character replaced by "_". */
const FAULTS: readonly (readonly [RegExp, string])[] = [
  [/\(\?(?!:)/, 'uses look-around or a named group'],
  [/[*+?}]\+/, 'uses a possessive quantifier'],
  [/\[[^\]]*\[:/, 'uses a POSIX class'],
  [/[^\u0020-\u007e]/, 'uses characters outside ASCII'],
];

/** What is wrong with the pattern; undefined when both engines read it alike. */
export function re2Fault(pattern: string): string | undefined {
  if (!pattern.startsWith('^') || !pattern.endsWith('$')) return 'is not anchored at both ends';
  for (const { 1: escaped = '' } of pattern.matchAll(/\\(.)/g)) {
    if (!COMMON_ESCAPES.test(escaped))
      return `uses the escape "\\${escaped}", which is not common to both engines`;
  }
  const plain = pattern.replaceAll(/\\./g, '_');
  const fault = FAULTS.find(([sign]) => sign.test(plain))?.[1];
  return (
    fault ?? (repeatsTooOften(plain) ? `repeats more than ${RE2_MAX_REPEAT} times` : undefined)
  );
}

function repeatsTooOften(plain: string): boolean {
  const counts = [...plain.matchAll(/\{([0-9]+)(?:,([0-9]+))?/g)].flatMap(
    ({ 1: low = '0', 2: high = '0' }) => [Number(low), Number(high)],
  );
  return counts.some((count) => count > RE2_MAX_REPEAT);
}
