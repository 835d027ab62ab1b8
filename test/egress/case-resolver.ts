// What the resolver says in one case: the file's own answers, in the shape of dns.lookup. Names
// that a case does not list are public, and localhost is what it always is.

import { isIP } from 'node:net';

import { z } from 'zod';

import type { ResolveHost } from '#core/egress/pinned-lookup.ts';

const PUBLIC = '93.184.215.14';
const LOCAL = /(^|\.)localhost$/;

export const dnsAnswerSchema = z.object({
  A: z.array(z.string()).optional(),
  AAAA: z.array(z.string()).optional(),
  rcode: z.number().optional(),
  timeout: z.boolean().optional(),
  /** The name that the search list led to. */
  resolvedAs: z.string().optional(),
});

export type DnsAnswer = z.infer<typeof dnsAnswerSchema>;

const NXDOMAIN = 3;

export function resolverOf(listed: Readonly<Record<string, readonly string[]>> = {}): ResolveHost {
  return (host, _options, callback) => {
    const name = host.replace(/\.$/, '');
    const fallback = LOCAL.test(name) ? '127.0.0.1' : PUBLIC;
    answer(callback, listed[name] ?? listed[`${name}.`] ?? [fallback]);
  };
}

/** Answers in turn; the last one stays. */
export function scriptedResolver(answers: readonly DnsAnswer[]): ResolveHost {
  let calls = 0;
  return (host, _options, callback) => {
    const {
      A = [],
      AAAA = [],
      rcode,
      timeout,
      resolvedAs,
    } = answers[calls] ?? answers.at(-1) ?? {};
    calls += 1;
    if (timeout === true) return;
    // An absolute name is not tried with the search list.
    const isElsewhere =
      resolvedAs !== undefined && host.endsWith('.') && host.slice(0, -1) !== resolvedAs;
    if (isElsewhere) fail(callback, 'ENOTFOUND');
    else if (rcode !== undefined && rcode !== 0)
      fail(callback, rcode === NXDOMAIN ? 'ENOTFOUND' : 'EAI_AGAIN');
    else answer(callback, [...A, ...AAAA]);
  };
}

type ResolverCallback = Parameters<ResolveHost>[2];

function answer(callback: ResolverCallback, addresses: readonly string[]): void {
  setImmediate(() =>
    callback(
      null,
      addresses.map((address) => ({ address, family: isIP(address) })),
    ),
  );
}

function fail(callback: ResolverCallback, code: string): void {
  setImmediate(() => callback(Object.assign(new Error(code), { code }), []));
}
