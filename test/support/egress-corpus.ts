// The adversarial egress cases of test/corpus/egress.json, typed, and its policies in our form.
// Cases are chosen by kind, never by id.

import { readFileSync } from 'node:fs';

import { z } from 'zod';

import type { EgressPolicy } from '#core/egress/egress-policy.ts';

const policySchema = z.object({
  development: z.boolean(),
  allowedHosts: z.array(z.string()),
  allowedPorts: z.array(z.number()),
  allowIpLiterals: z.boolean(),
  exceptions: z.array(
    z.object({ host: z.string(), cidrs: z.array(z.string()), ports: z.array(z.number()) }),
  ),
  nat64Prefixes: z.array(z.string()),
});

const caseSchema = z.object({
  id: z.string(),
  kind: z.string(),
  input: z.unknown(),
  policy: z.string().nullable(),
  resolve: z.record(z.string(), z.array(z.string())).optional(),
  expect: z.enum(['allow', 'deny']),
  stage: z.string().optional(),
  reason: z.string(),
  connectTo: z.array(z.string()).optional(),
  phase: z.string().optional(),
});

const corpusSchema = z.object({
  policies: z.record(z.string(), policySchema),
  cases: z.array(caseSchema),
});

export type CorpusCase = z.infer<typeof caseSchema>;

export interface EgressCorpus {
  casesOfKind(kind: string): readonly CorpusCase[];
  policyOf(corpusCase: CorpusCase): EgressPolicy;
}

export function readEgressCorpus(): EgressCorpus {
  const text = readFileSync(new URL('../corpus/egress.json', import.meta.url), 'utf8');
  const { cases, policies } = corpusSchema.parse(JSON.parse(text));
  return {
    casesOfKind: (kind) => cases.filter((corpusCase) => corpusCase.kind === kind),
    policyOf({ policy }) {
      const found = policies[policy ?? ''];
      if (found === undefined)
        throw new TypeError(`the corpus has no policy ${JSON.stringify(policy)}`);
      const { exceptions, ...rest } = found;
      return { ...rest, inClusterExceptions: exceptions };
    },
  };
}
