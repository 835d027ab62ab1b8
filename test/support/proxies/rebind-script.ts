// Names of an attacker whose answers change with each question, all with a time to live of 0.

import type { AnswerScript } from './scripted-dns.ts';

export const REBIND_PUBLIC = '93.184.215.14';
export const REBIND_PUBLIC6 = '2606:2800:21f:cb07::1';
const PRIVATE = ['10.9.8.7', '169.254.169.254', '127.0.0.1', '192.168.1.1'];
type Pattern = (
  asked: number,
  other: string,
) => { readonly A?: readonly string[]; readonly AAAA?: readonly string[] };

const PATTERNS: Readonly<Record<string, Pattern>> = {
  next: (asked, other) => ({ A: [asked === 0 ? REBIND_PUBLIC : other] }),
  turns: (asked, other) => ({ A: [asked % 2 === 0 ? REBIND_PUBLIC : other] }),
  next6: (asked) => ({ AAAA: [asked === 0 ? REBIND_PUBLIC6 : 'fd00:ec2::254'] }),
  both: (_, other) => ({ A: [REBIND_PUBLIC, other] }),
  behind: (_, other) => ({ A: [other, REBIND_PUBLIC] }),
  families: () => ({ A: [REBIND_PUBLIC], AAAA: ['fd00:ec2::254'] }),
};

/** What a name does is said by its first label: `PATTERN-NUMBER-…`. */
export const rebindScript: AnswerScript = ({ name, type, before: asked }) => {
  const [, pattern = '', number] = /^([a-z0-9]+)-(\d+)/.exec(name) ?? [];
  const other = PRIVATE[Number(number) % PRIVATE.length] ?? '';
  return PATTERNS[pattern]?.(asked, other)[type] ?? [];
};

/** Of arrivals, those that no answer that was checked led to. */
export function unchecked<T extends { readonly address: string }>(arrivals: readonly T[]): T[] {
  return arrivals.filter(({ address }) => address !== REBIND_PUBLIC && address !== REBIND_PUBLIC6);
}
