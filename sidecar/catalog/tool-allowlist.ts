// Which tools of a server are served. The same decision holds for lists and calls, because only
// allowed tools enter a snapshot at all. An empty list allows nothing; "all" must be written as `*`.

/** `*` stands for any run of characters, also none; everything else for itself. */
export function compileToolPattern(pattern: string): (name: string) => boolean {
  if (!pattern.includes('*')) return (name) => name === pattern;
  return globMatcher(pattern.split('*'));
}

// Literal parts are searched left to right and never backtracked into: linear in the name's length.
function globMatcher(parts: readonly string[]): (name: string) => boolean {
  const first = parts[0] ?? '';
  const last = parts.at(-1) ?? '';
  const middle = parts.slice(1, -1);
  return (name) => {
    if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last))
      return false;
    let at = first.length;
    const end = name.length - last.length;
    for (const part of middle) {
      const found = name.indexOf(part, at);
      if (found === -1 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  };
}

/** Every list must have a matching pattern. */
export function compileAllowlist(lists: readonly (readonly string[])[]): (name: string) => boolean {
  const compiled = lists.map((patterns) => patterns.map(compileToolPattern));
  return (name) =>
    compiled.length > 0 && compiled.every((patterns) => patterns.some((matches) => matches(name)));
}
