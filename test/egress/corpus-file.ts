// A file of adversarial egress cases, typed, and its policies in the product's form. The file is
// somebody else's: a case that cannot be read becomes a failure of its own and is never left out,
// and members that only explain (reason, source, parsed) are not looked at.

import { z } from 'zod';

import type { EgressPolicy } from '#core/egress/egress-policy.ts';

const policySchema = z.object({
  development: z.boolean(),
  schemes: z.array(z.enum(['https', 'http-loopback'])).min(1),
  allowedHosts: z.array(z.string()),
  allowedPorts: z.array(z.number()),
  allowIpLiterals: z.boolean(),
  exceptions: z.array(
    z.object({ host: z.string(), cidrs: z.array(z.string()), ports: z.array(z.number()) }),
  ),
  nat64Prefixes: z.array(z.string()),
  maxRedirects: z.number(),
  crossHostRedirects: z.literal('same-policy'),
});

const requestSchema = z.object({
  method: z.string(),
  url: z.string(),
  headers: z.array(z.string()),
  hasBody: z.boolean(),
});

const givenSchema = z.object({
  kind: z.string(),
  input: z.unknown(),
  policy: z.string().nullable(),
  resolve: z.record(z.string(), z.array(z.string())).optional(),
  /** Of which connection in a row the case tells. */
  phase: z.string().optional(),
  /** Of one connection; answers beyond are bait for whoever looks up again. */
  maxLookups: z.number().optional(),
});

const expectedSchema = z.object({
  expect: z.enum(['allow', 'deny']),
  stage: z.string().optional(),
  mustSend: z.array(z.string()).optional(),
  mustNotSend: z.array(z.string()).optional(),
  deniedAtHop: z.number().optional(),
  lastRequest: requestSchema.optional(),
  connectTo: z.array(z.string()).optional(),
  mustNotConnect: z.array(z.string()).optional(),
  maxLookups: z.number().optional(),
  selectedIssuer: z.string().optional(),
});

/** What a case gives to the product. */
export type CaseGiven = z.infer<typeof givenSchema>;
/** What must come out; nothing that runs product code receives it. */
export type CaseExpected = z.infer<typeof expectedSchema>;
export type LastRequest = z.infer<typeof requestSchema>;

export type CorpusEntry =
  | {
      readonly kind: 'case';
      readonly id: string;
      readonly given: CaseGiven;
      readonly expected: CaseExpected;
    }
  | { readonly kind: 'unreadable'; readonly id: string; readonly fault: string };

export interface EgressCorpus {
  readonly entries: readonly CorpusEntry[];
  /** The named policy as the product knows policies. */
  policyOf(given: CaseGiven): EgressPolicy;
}

const fileSchema = z.object({
  policies: z.record(z.string(), z.unknown()),
  cases: z.array(z.unknown()),
});

/** Throws for text that is not a file of cases at all. */
export function parseEgressCorpus(text: string): EgressCorpus {
  const { policies, cases } = fileSchema.parse(JSON.parse(text));
  return {
    entries: cases.map(readEntry),
    policyOf({ policy }) {
      const found = policySchema.safeParse(policies[policy ?? '']);
      if (!found.success)
        throw new TypeError(`no readable policy ${JSON.stringify(policy)}: ${faultOf(found)}`);
      return policyFrom(found.data);
    },
  };
}

function readEntry(value: unknown, index: number): CorpusEntry {
  const named = z.object({ id: z.string() }).safeParse(value);
  const id = named.success ? named.data.id : `case ${index + 1}`;
  const given = givenSchema.safeParse(value);
  const expected = expectedSchema.safeParse(value);
  if (!given.success) return { kind: 'unreadable', id, fault: faultOf(given) };
  if (!expected.success) return { kind: 'unreadable', id, fault: faultOf(expected) };
  return { kind: 'case', id, given: given.data, expected: expected.data };
}

function policyFrom(policy: z.infer<typeof policySchema>): EgressPolicy {
  const { development, schemes, exceptions, crossHostRedirects: _, ...rest } = policy;
  if (schemes.includes('http-loopback') !== development)
    throw new TypeError('plain http to loopback and development are one switch of the product');
  return { ...rest, development, inClusterExceptions: exceptions };
}

function faultOf({ error }: { readonly error?: z.ZodError | undefined }): string {
  return error === undefined ? '' : z.prettifyError(error).replaceAll('\n', ' ');
}
