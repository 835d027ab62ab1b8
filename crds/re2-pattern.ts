// Whether a pattern means the same to JavaScript and to Go's RE2, which the API server uses:
// no look-around, no back-references, no escapes that only one of them knows, no repetition
// beyond RE2's limit. Anything not known to be common to both is refused.

const RE2_MAX_REPEAT = 1000;
/** Escaped punctuation, and the classes that are ASCII in both. */
const COMMON_ESCAPES = /^[\\^$.*+?()[\]{}|/dDwW-]$/;

/** What is wrong with the pattern; undefined when both engines read it alike. */
export function re2Fault(pattern: string): string | undefined {
  if (!pattern.startsWith('^') || !pattern.endsWith('$')) return 'is not anchored at both ends';
  for (const { 1: escaped = '' } of pattern.matchAll(/\\(.)/g)) {
    if (!COMMON_ESCAPES.test(escaped)) return `uses the escape "\\${escaped}", which is not common to both engines`;
  }
  const plain = pattern.replaceAll(/\\./g, '_');
  if (/\(\?(?!:)/.test(plain)) return 'uses look-around or a named group';
  if (/[*+?}]\+/.test(plain)) return 'uses a possessive quantifier';
  if (/\[[^\]]*\[:/.test(plain)) return 'uses a POSIX class';
  if (!/^[\u0020-\u007e]*$/.test(plain)) return 'uses characters outside ASCII';
  for (const { 1: low = '', 2: high = low } of plain.matchAll(/\{([0-9]+)(?:,([0-9]+))?/g)) {
    if (Number(low) > RE2_MAX_REPEAT || Number(high) > RE2_MAX_REPEAT) return `repeats more than ${RE2_MAX_REPEAT} times`;
  }
  return undefined;
}
