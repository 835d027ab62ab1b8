// IPv6 text to its eight 16-bit groups, for the questions that a CIDR list can't answer (mapped,
// NAT64 and ISATAP addresses carry an IPv4 address inside). Syntax is judged by node:net first,
// so nothing here has to be lenient. RFC 4291 section 2.2, RFC 6052 section 2.2.

import { isIPv6 } from 'node:net';

/** Eight groups, or undefined for anything that is not IPv6 without a zone. */
export function ipv6Groups(text: string): readonly number[] | undefined {
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const [head = '', tail] = text.split('::');
  const left = groupsOf(head);
  if (tail === undefined) return left;
  const right = groupsOf(tail);
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
}

function groupsOf(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [Number.parseInt(part, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}

/** Dotted text of the IPv4 address in two groups. */
export function ipv4FromGroups(high: number, low: number): string {
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

/** The IPv4 address of `::ffff:a.b.c.d`, else undefined. */
export function mappedIpv4(groups: readonly number[]): string | undefined {
  if (groups.slice(0, 5).some((group) => group !== 0) || groups[5] !== 0xffff) return undefined;
  return ipv4FromGroups(groups[6] ?? 0, groups[7] ?? 0);
}

const NAT64_LENGTHS = [32, 40, 48, 56, 64, 96];

export type Nat64Address =
  | { readonly kind: 'embedded'; readonly ipv4: string }
  /** The prefix covers the address, but reserved bits are set: never an address to dial. */
  | { readonly kind: 'malformed' };

/** The IPv4 address inside an address of a NAT64 prefix such as `64:ff9b::/96`, if it is one. */
export function nat64Ipv4(groups: readonly number[], prefix: string): Nat64Address | undefined {
  const [prefixText = '', lengthText = ''] = prefix.split('/');
  const length = Number(lengthText);
  const prefixGroups = ipv6Groups(prefixText);
  if (prefixGroups === undefined || !NAT64_LENGTHS.includes(length)) return undefined;
  const bytes = bytesOf(groups);
  const prefixBytes = bytesOf(prefixGroups).slice(0, length / 8);
  if (prefixBytes.some((byte, index) => byte !== bytes[index])) return undefined;
  const rest = bytes.slice(length / 8);
  if (length < 96) {
    // Byte 8, the "u" octet, lies between or before the IPv4 bytes and must be zero.
    const [u] = rest.splice(8 - length / 8, 1);
    if (u !== 0) return { kind: 'malformed' };
  }
  if (rest.slice(4).some((byte) => byte !== 0)) return { kind: 'malformed' };
  return { kind: 'embedded', ipv4: rest.slice(0, 4).join('.') };
}

function bytesOf(groups: readonly number[]): number[] {
  return groups.flatMap((group) => [group >> 8, group & 255]);
}
