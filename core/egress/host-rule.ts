// Which hosts a rule names: `mcp.example.com` exactly, or `*.example.com` for any depth below
// example.com but never example.com itself. Rules and hosts are lower-case ASCII (punycode for
// IDN), without trailing dot. An address is no host name; `fairlead dev` alone may list the
// loopback literals. A single label means what the search list of the asking pod makes of it, so it
// is a name only where an in-cluster exception binds it to addresses and ports. RFC 1035 section
// 2.3.4 (lengths), RFC 6761, 7686, 8375, 9476 (names that no public resolver answers).

import { isLoopbackLiteral } from '#core/config/remote-url.ts';

/** With underscores: real names have them, and URL parsers and proxies take them. */
const LABEL = '[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?';
const MAX_LENGTH = 253;

export const HOST_RULE_PATTERN = `^((\\*\\.)?${LABEL}(\\.${LABEL})*|\\[::1\\])$`;

/** Last labels of names that only a private resolver answers. */
export const INTERNAL_DOMAINS =
  '(localhost|localdomain|local|internal|intranet|lan|home|corp|mail|private|svc|home[.]arpa|test|invalid|onion|alt)';

const PRIVATE_NAME = new RegExp(`^[^.]+$|[.]${INTERNAL_DOMAINS}$`);

/** True for names that only a private resolver answers, single labels among them. */
export function isPrivateName(host: string): boolean {
  return PRIVATE_NAME.test(host);
}

/** A last label of digits, or 0x and hex digits, makes the WHATWG parser read an IPv4 address. */
export const NUMERIC_HOST_PATTERN = '^\\[|(^|[.])([0-9]+|0x[0-9a-f]*)$';

/** Each matches the rules that have the fault; the kinds' CEL is made of the same patterns. */
const FAULT_PATTERNS = {
  'numeric-host': NUMERIC_HOST_PATTERN,
  'reserved-name':
    '^(metadata[.]google[.]internal|metadata[.]goog|metadata[.]azure[.]internal|metadata[.]tencentyun[.]com|instance-data[.]ec2[.]internal|kubernetes[.]default([.]svc([.]cluster[.]local)?)?)$',
  // Everybody can have a name below a top-level domain, and every Service has one in the cluster.
  'wide-wildcard': '^[*][.]([^.]+|(svc[.])?cluster[.]local)$',
  'internal-wildcard': `^[*][.](.*[.])?${INTERNAL_DOMAINS}$`,
} as const;

export const SINGLE_LABEL_PATTERN = '^[a-z0-9_-]+$';

type FaultByPattern = keyof typeof FAULT_PATTERNS;
export type HostRuleFault = 'form' | 'single-label' | FaultByPattern;

export const HOST_RULE_MESSAGES = {
  form: 'must be a lower-case host name like "mcp.example.com", or "*.example.com" for every name below example.com',
  'numeric-host':
    'must not be a number or an address (loopback addresses are accepted only by "fairlead dev")',
  'single-label':
    'must have two labels at least, unless inClusterExceptions names the host ("fairlead dev" accepts localhost)',
  'reserved-name': 'must not name a metadata service or the Kubernetes API server',
  'wide-wildcard': 'must not be a wildcard over a top-level domain or over all Services',
  'internal-wildcard':
    'must not be a wildcard over names that only a private resolver answers; list such hosts by name',
} as const satisfies Record<HostRuleFault, string>;

/** Exceptions bind a host to addresses and ports, so theirs may be a wildcard over one namespace. */
export type HostRulePlace = 'allowed-host' | 'exception';

const FAULTS_AT: Readonly<Record<HostRulePlace, readonly FaultByPattern[]>> = {
  'allowed-host': ['numeric-host', 'reserved-name', 'wide-wildcard', 'internal-wildcard'],
  exception: ['numeric-host', 'reserved-name', 'wide-wildcard'],
};

const FORM = new RegExp(HOST_RULE_PATTERN);
const SINGLE_LABEL = new RegExp(SINGLE_LABEL_PATTERN);
const FAULTS = Object.fromEntries(
  Object.entries(FAULT_PATTERNS).map(([fault, pattern]) => [fault, new RegExp(pattern)]),
) as Readonly<Record<FaultByPattern, RegExp>>;

/** Fault and pattern, beside the form, in the order in which they are looked for. */
export function hostRuleFaultPatterns(
  place: HostRulePlace,
): readonly (readonly [FaultByPattern, string])[] {
  return FAULTS_AT[place].map((fault) => [fault, FAULT_PATTERNS[fault]]);
}

export interface HostRuleContext {
  readonly development: boolean;
  readonly place: HostRulePlace;
  /** Hosts that in-cluster exceptions name. */
  readonly exceptionHosts: readonly string[];
}

/** What is wrong with a rule that somebody wrote; undefined when it is in order. */
export function hostRuleFault(
  rule: string,
  { development, place, exceptionHosts }: HostRuleContext,
): HostRuleFault | undefined {
  if (rule.length > MAX_LENGTH || !FORM.test(rule)) return 'form';
  if (development && isLoopbackLiteral(rule)) return undefined;
  const fault = FAULTS_AT[place].find((name) => FAULTS[name].test(rule));
  if (fault !== undefined) return fault;
  const isBare = place === 'allowed-host' && SINGLE_LABEL.test(rule);
  return isBare && !exceptionHosts.includes(rule) ? 'single-label' : undefined;
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
