// What to say to a word that is no command and no option.

export function suggestCommand(word: string, known: readonly string[]): string {
  const [best] = known
    .map((name) => ({ name, distance: editDistance(word, name) }))
    .filter(({ distance, name }) => distance <= 2 || name.startsWith(word))
    .toSorted((a, b) => a.distance - b.distance);
  const hint = best === undefined ? '' : ` Did you mean "${best.name}"?`;
  const kind = word.startsWith('-') ? 'option' : 'command';
  return `fairlead: ${JSON.stringify(word)} is no ${kind}.${hint}\nSee "fairlead --help".\n`;
}

/** Levenshtein distance; the words are short. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of a.split('').entries()) {
    const next = [i + 1];
    for (const [j, other] of b.split('').entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
