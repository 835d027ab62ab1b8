// Targets for proxies from the egress cases that the guard is tested with: the spellings of IP
// addresses as an authority, and the addresses that no name may lead to.

import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';

import { REBIND_ZONE } from './core-dns.ts';

interface Case {
  readonly kind: string;
  readonly input: unknown;
  readonly expect: string;
  readonly stage?: string;
}

const CORPUS = new URL('../../corpus/egress.json', import.meta.url);

function readCases(): readonly Case[] {
  const { cases } = JSON.parse(readFileSync(CORPUS, 'utf8')) as { readonly cases: readonly Case[] };
  return cases;
}

/** Hosts as they were written, before any parser made something of them. */
export function literalSpellings(): readonly string[] {
  const hosts = readCases()
    .filter(
      ({ kind, expect, stage }) => kind === 'url' && expect === 'deny' && stage === 'ip-literal',
    )
    .flatMap(({ input }) => /^https?:\/\/(\[[^\]]*\]|[^/?#:]*)/.exec(String(input))?.[1] ?? []);
  // What cannot be on one line cannot be asked for.
  const printable = hosts.filter((host) => /^[^\s\p{Cc}]+$/u.test(host));
  return [...new Set([...printable, '93.184.215.14', '[2606:4700::6810:1]', '[93.184.215.14]'])];
}

/** A name below the attacker's zone for each address that a guard must not connect to. */
export function specialAddresses(): ReadonlyMap<string, readonly string[]> {
  const addresses = readCases()
    .filter(({ kind, expect }) => expect === 'deny' && (kind === 'ip' || kind === 'metadata'))
    .map(({ input }) => String(input))
    .filter((address) => isIP(address) !== 0 && !address.includes('%'));
  return new Map(
    [...new Set(addresses)].map((address, index) => [
      `s${String(index)}.${REBIND_ZONE}`,
      [address],
    ]),
  );
}
