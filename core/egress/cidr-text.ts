// Whether a text is an address range, strictly: what Go's netip.ParsePrefix, Kubernetes' isCIDR()
// and node:net read alike. No zone, no leading zeros, no IPv4 address inside IPv6.

import { isIP } from 'node:net';

import { ipv6Groups, mappedIpv4 } from './ipv6-groups.ts';

export const CIDR_PATTERN = '^[0-9a-f.:]+/[0-9]+$';

const PATTERN = new RegExp(CIDR_PATTERN);

export function isCidr(text: string): boolean {
  if (!PATTERN.test(text)) return false;
  const [address = '', bits = ''] = text.split('/');
  const family = isIP(address);
  if (family === 0 || (family === 6 && !isPlainIpv6(address))) return false;
  return /^(0|[1-9][0-9]*)$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}

function isPlainIpv6(address: string): boolean {
  const groups = ipv6Groups(address);
  return groups !== undefined && !address.includes('.') && mappedIpv4(groups) === undefined;
}
