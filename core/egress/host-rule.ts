// Which hosts a rule names: `mcp.example.com` exactly, or `*.example.com` for any depth below
// example.com but never example.com itself. Rules and hosts are lower-case ASCII (punycode for
// IDN), without trailing dot. An address is no host name; `fairlead dev` alone may list the
// loopback literals.

import { isLoopbackLiteral } from '#core/config/remote-url.ts';

export const HOST_RULE_PATTERN =
  '^((\\*\\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*|\\[::1\\])$';

const PATTERN = new RegExp(HOST_RULE_PATTERN);

export type HostRuleFault = 'form' | 'numeric-host';

export const HOST_RULE_MESSAGES = {
  form: 'must be a lower-case host name like "mcp.example.com", or "*.example.com" for every name below example.com',
  'numeric-host':
    'must not be a number or an address (loopback addresses are accepted only by "fairlead dev")',
} as const satisfies Record<HostRuleFault, string>;

/** What is wrong with a rule that somebody wrote; undefined when it is in order. */
export function hostRuleFault(
  rule: string,
  rules: { readonly development: boolean },
): HostRuleFault | undefined {
  if (!PATTERN.test(rule)) return 'form';
  if (rules.development && isLoopbackLiteral(rule)) return undefined;
  const lastLabel = rule.split('.').at(-1) ?? '';
  return rule.startsWith('[') || /^([0-9]+|0x[0-9a-f]*)$/.test(lastLabel)
    ? 'numeric-host'
    : undefined;
}

/** True when `host` (as WHATWG URL gives it, no port) is named by `rule`. */
export function hostRuleMatches(rule: string, host: string): boolean {
  if (!rule.startsWith('*.')) return rule === host;
  const suffix = rule.slice(1);
  return host.length > suffix.length && host.endsWith(suffix) && !host.startsWith('.');
}

export function isHostListed(rules: readonly string[], host: string): boolean {
  return listingRule(rules, host) !== undefined;
}

/** The first rule that names the host. */
export function listingRule(rules: readonly string[], host: string): string | undefined {
  return rules.find((rule) => hostRuleMatches(rule, host));
}

/** The in-cluster exceptions that name the host. */
export function exceptionsOf<Exception extends { readonly host: string }>(
  exceptions: readonly Exception[],
  host: string,
): Exception[] {
  return exceptions.filter((exception) => hostRuleMatches(exception.host, host));
}

export interface PortRules {
  readonly allowedPorts: readonly number[];
  readonly inClusterExceptions: readonly {
    readonly host: string;
    readonly ports: readonly number[];
  }[];
}

/** A host with an in-cluster exception is reached on the exception's ports and on no others. */
export function isPortListed(rules: PortRules, host: string, port: number): boolean {
  const exceptions = exceptionsOf(rules.inClusterExceptions, host);
  if (exceptions.length === 0) return rules.allowedPorts.includes(port);
  return exceptions.some((exception) => exception.ports.includes(port));
}
