// Wildcards over public suffixes (`*.co.uk`, `*.github.io`): below one, everybody can have a name,
// so such a rule lists the whole world. The API server cannot hold the Public Suffix List
// (https://publicsuffix.org), so this is judged by the operator and by the offline commands. Pure.

import { getPublicSuffix } from 'tldts';

import type { McpServer } from '#crds/validate-object.ts';

export interface HostRuleIssue {
  readonly path: string;
  readonly message: string;
}

export function isPublicSuffixWildcard(rule: string): boolean {
  if (!rule.startsWith('*.')) return false;
  const suffix = rule.slice(2);
  return getPublicSuffix(suffix, { allowPrivateDomains: true }) === suffix;
}

export function publicSuffixIssues({ spec }: McpServer): HostRuleIssue[] {
  return spec.egress.allowedHosts.flatMap((rule, index) =>
    isPublicSuffixWildcard(rule)
      ? [
          {
            path: `spec.egress.allowedHosts[${String(index)}]`,
            message: `must not be a wildcard over ${JSON.stringify(rule.slice(2))}, below which anybody can have a name`,
          },
        ]
      : [],
  );
}
