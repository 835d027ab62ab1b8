// The two questions of egress, pure: may this URL be asked for at all, and may this address be
// dialled for that host. Both answer for one immutable policy. The address question is asked for
// literals, for every address that a resolver returns, and for the peer of an open socket.

import { BlockList, isIP } from 'node:net';

import { classifyAddress, NEVER_REACHABLE, plainAddress } from './classify-address.ts';
import type {
  DenyReason,
  EgressVerdict,
  EgressPolicy,
  EgressStage,
  InClusterException,
} from './egress-policy.ts';
import { exceptionsOf, INTERNAL_DOMAINS, isHostListed, isPortListed } from './host-rule.ts';
import { ipv6Groups, nat64Ipv4 } from './ipv6-groups.ts';
import type { Nat64Address } from './ipv6-groups.ts';
import { proxyAddressFault } from './proxy-policy.ts';

const ALLOW: EgressVerdict = { kind: 'allow' };
const HOST_FORM = /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/;
const LOOPBACK_IPV4 = /^127\.\d+\.\d+\.\d+$/;
/** Names that only a private resolver answers; a policy of `*` means public names. */
const INTERNAL_NAME = new RegExp(`(^|[.])${INTERNAL_DOMAINS}$`);

export interface AddressQuestion {
  /** As in the URL, brackets of an IPv6 literal removed. */
  readonly host: string;
  readonly port: number;
  readonly address: string;
  readonly stage: EgressStage;
}

/** A parsed URL under one policy, with what the steps ask for. */
interface UrlQuestion {
  readonly policy: EgressPolicy;
  readonly url: URL;
  readonly host: string;
  readonly port: number;
  /** A loopback host in development, where other rules hold. */
  readonly isLoopback: boolean;
  readonly isLiteral: boolean;
}

interface NamedUrlStep {
  readonly name: string;
  /** What speaks against the URL; undefined when nothing does. */
  readonly fault: (question: UrlQuestion) => DenyReason | undefined;
}

/** In the order in which they are asked; the first fault is the verdict. */
const URL_STEPS = [
  // The only protocols that the connector can speak.
  {
    name: 'scheme',
    fault: ({ url }) =>
      url.protocol === 'https:' || url.protocol === 'http:' ? undefined : 'scheme',
  },
  // A password in a URL ends in logs, and `https://good@evil/` reads like another host.
  {
    name: 'user-information',
    fault: ({ url }) =>
      url.username === '' && url.password === '' ? undefined : 'user-information',
  },
  // What is not encrypted can be read and changed on the way.
  {
    name: 'encryption',
    fault: ({ url, isLoopback }) =>
      url.protocol === 'http:' && !isLoopback ? 'plain-http' : undefined,
  },
  // `host.` is another spelling of `host`, and rules name one spelling.
  {
    name: 'trailing-dot',
    fault: ({ url }) =>
      url.hostname === '' || url.hostname.endsWith('.') ? 'trailing-dot' : undefined,
  },
  // The URL parser takes `"x.example.com`, which a wildcard covers; resolvers, proxies and logs read
  // such names each in their own way.
  {
    name: 'host-form',
    fault: ({ url, host, isLiteral }) =>
      isLiteral || url.hostname.endsWith('.') || (host.length <= 253 && HOST_FORM.test(host))
        ? undefined
        : 'host-form',
  },
  // An address is no name: it proves no certificate and passes by every rule about names.
  {
    name: 'ip-literal',
    fault: ({ policy, isLiteral, isLoopback }) =>
      isLiteral && !isLoopback && policy.allowIpLiterals !== true ? 'ip-literal' : undefined,
  },
  // The platform team lists hosts; nothing that a server says adds one.
  {
    name: 'host',
    fault: ({ policy, url }) =>
      policy.allowedHosts.includes('*') || isHostListed(policy.allowedHosts, url.hostname)
        ? undefined
        : 'host-not-listed',
  },
  // Where any host is listed, that means public names.
  { name: 'public-name', fault: internalNameFault },
  // Another port is another service.
  {
    name: 'port',
    fault: ({ policy, host, port, isLoopback }) =>
      port > 0 && (isLoopback || isPortListed(policy, host, port)) ? undefined : 'port-not-listed',
  },
] as const satisfies readonly NamedUrlStep[];

export type UrlStepName = (typeof URL_STEPS)[number]['name'];

export interface UrlStepVerdict {
  readonly name: UrlStepName;
  readonly fault: DenyReason | undefined;
}

/** Judges a parsed URL: each step of the policy, and the address when it is a literal. */
export function decideUrl(policy: EgressPolicy, url: URL): EgressVerdict {
  for (const { fault } of judgeUrlSteps(policy, url)) {
    if (fault !== undefined) return deny('url-policy', fault);
  }
  return decideLiteral(policy, bareHost(url), portOf(url)) ?? ALLOW;
}

/** What each step says, also those after the first fault. */
export function* judgeUrlSteps(policy: EgressPolicy, url: URL): Generator<UrlStepVerdict> {
  const host = bareHost(url);
  const question: UrlQuestion = {
    policy,
    url,
    host,
    port: portOf(url),
    isLoopback: policy.development && isLoopbackHost(host),
    // Rules name a literal of IPv6 in brackets, as the URL does.
    isLiteral: url.hostname.startsWith('[') || isIP(url.hostname) !== 0,
  };
  for (const { name, fault } of URL_STEPS) yield { name, fault: fault(question) };
}

function internalNameFault({
  policy,
  url,
  isLiteral,
  isLoopback,
}: UrlQuestion): DenyReason | undefined {
  if (!policy.allowedHosts.includes('*') || isLoopback || isLiteral) return undefined;
  return url.hostname.includes('.') && !INTERNAL_NAME.test(url.hostname)
    ? undefined
    : 'internal-name';
}

/** Judges a host that is an address, for which no lookup runs; undefined for a name. */
export function decideLiteral(
  policy: EgressPolicy,
  host: string,
  port: number,
): EgressVerdict | undefined {
  if (isIP(host) === 0) return undefined;
  return decideAddress(policy, { host, port, address: host, stage: 'ip-literal' });
}

/** Judges one address for one host. In doubt the answer is deny. */
export function decideAddress(policy: EgressPolicy, question: AddressQuestion): EgressVerdict {
  const { host, port, address, stage } = question;
  if (policy.isProxy === true) return decideProxyAddress(question);
  const verdict = classifyAddress(address);
  if (policy.development && isLoopbackHost(host)) {
    const isLoopback = verdict.kind === 'special' && verdict.range === 'loopback';
    return isLoopback ? ALLOW : deny(stage, 'not-loopback');
  }
  const exceptions = exceptionsOf(policy.inClusterExceptions, host);
  if (exceptions.length > 0) return decideExceptionAddress(exceptions, question);
  const embedded = embeddedIpv4(policy, address);
  if (embedded?.kind === 'malformed') return deny(stage, 'special-address', 'nat64-malformed');
  const judged = embedded === undefined ? verdict : classifyAddress(embedded.ipv4);
  if (judged.kind === 'special') return deny(stage, 'special-address', judged.range);
  if (port < 1) return deny(stage, 'port-not-listed');
  return ALLOW;
}

function decideProxyAddress({ address, stage }: AddressQuestion): EgressVerdict {
  const range = proxyAddressFault(address);
  return range === undefined ? ALLOW : deny(stage, 'special-address', range);
}

/** A host with an exception is pinned to its CIDRs and ports: no other address, not even a public one. */
function decideExceptionAddress(
  exceptions: readonly InClusterException[],
  question: AddressQuestion,
): EgressVerdict {
  const { port, stage } = question;
  const address = plainAddress(question.address);
  const verdict = classifyAddress(address);
  if (verdict.kind === 'special' && NEVER_REACHABLE.has(verdict.range))
    return deny(stage, 'special-address', verdict.range);
  const isInside = exceptions.some(
    ({ ports, cidrs }) => ports.includes(port) && isInCidrs(cidrs, address),
  );
  return isInside ? ALLOW : deny(stage, 'outside-exception');
}

function isInCidrs(cidrs: readonly string[], address: string): boolean {
  const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
  // An IPv6 subnet that covers ::ffff:0:0/96 would match every IPv4 address: families never mix.
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = '', length = ''] = cidr.split('/');
    const cidrFamily = isIP(network) === 4 ? 'ipv4' : 'ipv6';
    if (cidrFamily === family) list.addSubnet(network, Number(length), family);
  }
  return list.check(address, family);
}

function embeddedIpv4(policy: EgressPolicy, address: string): Nat64Address | undefined {
  const groups = policy.nat64Prefixes === undefined ? undefined : ipv6Groups(address);
  if (groups === undefined) return undefined;
  for (const prefix of policy.nat64Prefixes ?? []) {
    const embedded = nat64Ipv4(groups, prefix);
    if (embedded !== undefined) return embedded;
  }
  return undefined;
}

function deny(stage: EgressStage, reason: DenyReason, detail?: string): EgressVerdict {
  return detail === undefined
    ? { kind: 'deny', stage, reason }
    : { kind: 'deny', stage, reason, detail };
}

/** `localhost`, 127.0.0.0/8 or ::1 as written in a URL; `localhost.` and mapped forms are not. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || (LOOPBACK_IPV4.test(host) && isIP(host) === 4);
}

/** Host of a URL without the brackets of an IPv6 literal. */
export function bareHost(url: URL): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
}

export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}
