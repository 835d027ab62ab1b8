// What an IP address is, by its bits and never by its spelling: public, or the name of the
// special range that it lies in. Pure. Never resolves, never consults a policy.
// Sources: IANA IPv4 and IPv6 special-purpose registries, RFC 4291, RFC 5214 (ISATAP),
// cloud vendors' metadata addresses. Globally reachable special blocks (AS112, AMT, 6to4, Teredo,
// ORCHID …) count as special too: no MCP server lives there, and some of them carry an IPv4
// address that a router on the way unpacks.

import { BlockList, isIPv4 } from 'node:net';

import { ipv6Groups, mappedIpv4 } from './ipv6-groups.ts';

export type AddressClass =
  | { readonly kind: 'public' }
  | { readonly kind: 'special'; readonly range: SpecialRange };

// The first match names the range, so narrow ranges come before the wide ones around them.
const IPV4_RANGES = {
  'cloud-metadata': ['168.63.129.16/32', '100.100.100.200/32', '192.0.0.192/32'],
  'link-local': ['169.254.0.0/16'],
  'this-network': ['0.0.0.0/8'],
  loopback: ['127.0.0.0/8'],
  'private-use': ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'],
  'shared-address-space': ['100.64.0.0/10'],
  'ietf-protocol-assignments': ['192.0.0.0/24'],
  documentation: ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24'],
  as112: ['192.31.196.0/24', '192.175.48.0/24'],
  amt: ['192.52.193.0/24'],
  'deprecated-6to4-relay': ['192.88.99.0/24'],
  benchmarking: ['198.18.0.0/15'],
  multicast: ['224.0.0.0/4'],
  broadcast: ['255.255.255.255/32'],
  reserved: ['240.0.0.0/4'],
} as const;

const IPV6_RANGES = {
  loopback: ['::1/128'],
  unspecified: ['::/128'],
  'ipv4-compatible': ['::/96'],
  'ipv4-translated-siit': ['::ffff:0:0:0/96'],
  nat64: ['64:ff9b::/96', '64:ff9b:1::/48'],
  'discard-only': ['100::/64'],
  'dummy-prefix': ['100:0:0:1::/64'],
  'ietf-protocol-assignments': ['2001::/23'],
  documentation: ['2001:db8::/32', '3fff::/20'],
  '6to4': ['2002::/16'],
  as112: ['2620:4f:8000::/48'],
  'srv6-sids': ['5f00::/16'],
  'cloud-metadata': [
    'fd00:ec2::/32',
    'fd20:ce::254/128',
    'fd00:c1::a9fe:a9fe/128',
    'fd00:100::100:200/128',
    'fd00:a9fe:a9fe::1/128',
    'fd00:42::42/128',
  ],
  'unique-local': ['fc00::/7'],
  'link-local': ['fe80::/10'],
  'deprecated-site-local': ['fec0::/10'],
  multicast: ['ff00::/8'],
} as const;

export type SpecialRange =
  | keyof typeof IPV4_RANGES
  | keyof typeof IPV6_RANGES
  | 'isatap'
  | 'not-global-unicast'
  | 'zoned'
  | 'not-an-address';

/** Ranges that no exception may open: nothing behind them is ever a server that somebody runs. */
export const NEVER_REACHABLE: ReadonlySet<SpecialRange> = new Set<SpecialRange>([
  'cloud-metadata',
  'link-local',
  'this-network',
  'unspecified',
  'multicast',
  'broadcast',
  'not-global-unicast',
  'zoned',
  'not-an-address',
]);

interface NamedList {
  readonly name: SpecialRange;
  readonly list: BlockList;
}

const IPV4_LISTS = namedLists(IPV4_RANGES, 'ipv4');
const IPV6_LISTS = namedLists(IPV6_RANGES, 'ipv6');
const GLOBAL_UNICAST = listOf(['2000::/3'], 'ipv6');

function namedLists(
  ranges: Readonly<Record<string, readonly string[]>>,
  family: 'ipv4' | 'ipv6',
): readonly NamedList[] {
  return Object.entries(ranges).map(([name, cidrs]) => ({
    name: name as SpecialRange,
    list: listOf(cidrs, family),
  }));
}

function listOf(cidrs: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = '', length = ''] = cidr.split('/');
    list.addSubnet(network, Number(length), family);
  }
  return list;
}

/** Judges address text as resolvers and sockets give it; inet_aton spellings are not addresses. */
export function classifyAddress(text: string): AddressClass {
  if (isIPv4(text)) return classifyIpv4(text);
  const groups = ipv6Groups(text);
  if (groups === undefined) return special(text.includes('%') ? 'zoned' : 'not-an-address');
  const mapped = mappedIpv4(groups);
  if (mapped !== undefined) return classifyIpv4(mapped);
  const range = IPV6_LISTS.find(({ list }) => list.check(text, 'ipv6'))?.name;
  if (range !== undefined) return special(range);
  if (!GLOBAL_UNICAST.check(text, 'ipv6')) return special('not-global-unicast');
  return isIsatap(groups) ? special('isatap') : { kind: 'public' };
}

function classifyIpv4(text: string): AddressClass {
  const range = IPV4_LISTS.find(({ list }) => list.check(text, 'ipv4'))?.name;
  return range === undefined ? { kind: 'public' } : special(range);
}

/** Interface identifiers `0:5efe:a.b.c.d` and `200:5efe:a.b.c.d`: an ISATAP router unpacks them. */
function isIsatap(groups: readonly number[]): boolean {
  return (groups[4] === 0 || groups[4] === 0x0200) && groups[5] === 0x5efe;
}

function special(range: SpecialRange): AddressClass {
  return { kind: 'special', range };
}

/** One spelling for each address: mapped IPv4 as IPv4, anything else as given. */
export function plainAddress(text: string): string {
  const groups = ipv6Groups(text);
  if (groups === undefined) return text;
  return mappedIpv4(groups) ?? text;
}
