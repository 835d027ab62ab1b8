// Which egress proxy may be configured, and at which addresses it may be. The platform team names it,
// so private addresses are fine: most proxies have one. Addresses that are no proxy anywhere
// (metadata, link-local, unspecified, and those in which an IPv4 address hides) stay closed, so that
// neither a typing error nor a DNS record makes one of them the next hop. Pure.

import { classifyAddress } from './classify-address.ts';
import type { SpecialRange } from './classify-address.ts';
import type { EgressPolicy } from './egress-policy.ts';

export interface ProxyAddress {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

/** Besides public addresses. Clusters use the last two for pods and Services, too. */
const PROXY_RANGES: ReadonlySet<SpecialRange> = new Set<SpecialRange>([
  'loopback',
  'private-use',
  'shared-address-space',
  'unique-local',
  'reserved',
  'benchmarking',
]);

/** `http://host:port` or `https://host:port` and nothing else; the port is always said. */
export function parseProxyUrl(text: string): ProxyAddress | undefined {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined;
  const isTls = url.protocol === 'https:';
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port);
  // The parser takes many spellings; rules, certificates and logs know this one.
  const isPlain = text === `${url.protocol}//${url.hostname}:${String(port)}`;
  if (!isPlain || port < 1 || url.hostname.endsWith('.')) return undefined;
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  return { host, port, isTls };
}

/** For the connection to the proxy and for nothing else. */
export function proxyPolicy({ host, port }: ProxyAddress): EgressPolicy {
  return {
    allowedHosts: [host],
    allowedPorts: [port],
    inClusterExceptions: [],
    development: false,
    isProxy: true,
  };
}

/** The range that speaks against a proxy at this address; undefined when none does. */
export function proxyAddressFault(address: string): SpecialRange | undefined {
  const verdict = classifyAddress(address);
  if (verdict.kind === 'public' || PROXY_RANGES.has(verdict.range)) return undefined;
  return verdict.range;
}
