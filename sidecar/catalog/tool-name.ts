// Names of tools in the merged catalog: `alias__tool`, valid for every model API (at most 64 of
// A-Z a-z 0-9 _ -), else a readable part plus a hash of the full pair. Names depend only on the set
// of pairs, not on order or restarts, and are mapped back by table, never by splitting:
// a tool's own name may contain `__`.

import { createHash } from 'node:crypto';

export const MAX_NAME_LENGTH = 64;
const SEPARATOR = '__';
const VALID = /^[A-Za-z0-9_-]{1,64}$/;

export interface NamedPair {
  readonly alias: string;
  readonly tool: string;
}

/** One exposed name per pair, all different; same order as the input. Pairs must be distinct. */
export function exposedNames(pairs: readonly NamedPair[]): string[] {
  const plain = pairs.map(({ alias, tool }) => `${alias}${SEPARATOR}${tool}`);
  const taken = new Set(plain.filter((name) => VALID.test(name)));
  const hashed = new Map<number, string>();
  // Pairs that need a hash take theirs in the order of their full names: independent of list order.
  const needHash = pairs
    .map((_, index) => index)
    .filter((index) => !VALID.test(plain[index] ?? ''));
  needHash.sort((a, b) => ((plain[a] ?? '') < (plain[b] ?? '') ? -1 : 1));
  for (const index of needHash) {
    const pair = pairs[index];
    if (pair === undefined) continue;
    const name = hashedName(pair, taken);
    taken.add(name);
    hashed.set(index, name);
  }
  return plain.map((name, index) => hashed.get(index) ?? name);
}

function hashedName({ alias, tool }: NamedPair, taken: ReadonlySet<string>): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([alias, tool]))
    .digest('hex');
  const readable = `${alias}${SEPARATOR}${tool.replaceAll(/[^A-Za-z0-9_-]+/g, '_')}`;
  for (let length = 8; length <= 40; length += 4) {
    const name = `${readable.slice(0, MAX_NAME_LENGTH - length - 1)}_${digest.slice(0, length)}`;
    if (!taken.has(name)) return name;
  }
  throw new TypeError('two tools have the same name on one server');
}
