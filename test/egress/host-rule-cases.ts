// Cases about host rules as somebody writes them into a policy, judged as the kinds judge them.

import { z } from 'zod';

import { hostRuleFault } from '#core/egress/host-rule.ts';
import { isPublicSuffixWildcard } from '#operator/reconcile/mcp-server/judge-host-rules.ts';

import type { CaseGiven } from './corpus-file.ts';
import type { Verdict } from './observation.ts';

const CONTEXT = { development: false, place: 'allowed-host', exceptionHosts: [] } as const;

export function runHostRuleCase(given: CaseGiven): Verdict {
  const rule = z.string().parse(given.input);
  const fault =
    hostRuleFault(rule, CONTEXT) ?? (isPublicSuffixWildcard(rule) ? 'public-suffix' : undefined);
  return fault === undefined
    ? { expect: 'allow' }
    : { expect: 'deny', stage: 'policy', reason: fault };
}
