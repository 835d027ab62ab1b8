// Allowlists of two clients for Squid and smokescreen, written by hand in the form in which the
// operator will render them. Gone when it does.

import type { Allowlists } from './proxy-pair.ts';

export interface AllowlistClient {
  readonly client: string;
  readonly hosts: readonly string[];
  readonly ports: readonly number[];
}

const DENIED_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];

/**
 * All of IPv6 but 2000::/3 and ::ffff:0:0/96, where Squid keeps its IPv4 addresses: each prefix is
 * the first bits of the latter, the last of them turned over.
 */
const OUTSIDE_GLOBAL = Array.from({ length: 96 }, (_, index) => index)
  .filter((index) => index !== 2)
  .map((index) => {
    const mapped = 0xffffn << 32n;
    const bit = 1n << BigInt(127 - index);
    const value = ((mapped ^ bit) / bit) * bit;
    const groups = Array.from(
      { length: 8 },
      (__, at) => (value >> BigInt(112 - 16 * at)) & 0xffffn,
    );
    return `${groups.map((group) => group.toString(16)).join(':')}/${String(index + 1)}`;
  });
const DENIED_V6 = [
  ...OUTSIDE_GLOBAL,
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
];

function squidFiles(clients: readonly AllowlistClient[]): Readonly<Record<string, string>> {
  const perClient = clients.map(({ client, hosts }, index) => {
    const wild = hosts.filter((host) => host.startsWith('*.')).map((host) => host.slice(2));
    const apex = wild.filter((host) => !hosts.includes(host));
    const name = `c${String(index)}`;
    return {
      name,
      hostsFile: hosts.map((host) => (host.startsWith('*.') ? host.slice(1) : host)),
      apexFile: apex,
      client,
    };
  });
  const files: Record<string, string> = {};
  const lines: string[] = [
    'positive_dns_ttl 30 seconds',
    'negative_dns_ttl 5 seconds',
    'acl odd_host dstdom_regex -n [^a-zA-Z0-9._-]',
    'acl literal_host dstdom_regex -n ^[0-9.]+$ ^\\[ : ^0x \\.0x',
    `acl private_dst dst ${DENIED_V4.join(' ')}`,
    `acl private_dst6 dst ${DENIED_V6.join(' ')}`,
    'acl tls_ports port 443',
    'http_access deny !CONNECT',
    'http_access deny odd_host',
    'http_access deny literal_host',
    'http_access deny !tls_ports',
  ];
  for (const { name, client, hostsFile, apexFile } of perClient) {
    files[`${name}.hosts`] = hostsFile.join('\n') + '\n';
    lines.push(
      `acl ${name} user_cert CN ${client}`,
      `acl ${name}_hosts dstdomain -n "${name}.hosts"`,
    );
    if (apexFile.length > 0) {
      files[`${name}.apex`] = apexFile.join('\n') + '\n';
      lines.push(`acl ${name}_apex dstdomain -n "${name}.apex"`);
      lines.push(`http_access deny ${name} ${name}_apex`);
    }
    lines.push(`http_access allow ${name} ${name}_hosts !private_dst !private_dst6`);
  }
  lines.push('http_access deny all');
  files['allowlist.conf'] = lines.join('\n') + '\n';
  return files;
}

function smokescreenAcl(clients: readonly AllowlistClient[]): string {
  const service = (name: string, hosts: readonly string[]): object => ({
    name,
    project: 'fairlead',
    action: 'enforce',
    allowed_domains: hosts,
  });
  // YAML reads JSON.
  return JSON.stringify({
    version: 'v1',
    services: clients.map(({ client, hosts }) => service(client, hosts)),
    default: service('default', []),
  });
}

const SMOKESCREEN_FLAGS = [...DENIED_V4, ...DENIED_V6]
  .map((range) => `--deny-range=${range}`)
  .concat('--disable-acl-policy-action=open', '--disable-acl-policy-action=report');

export function allowlists(clients: readonly AllowlistClient[]): Allowlists {
  return {
    squid: { files: squidFiles(clients), include: 'allowlist.conf' },
    smokescreen: { acl: smokescreenAcl(clients), flags: SMOKESCREEN_FLAGS },
  };
}

/** What a careless administrator would write: everything to everybody, private addresses too. */
export const TOO_WIDE: Allowlists = {
  squid: { files: { 'allowlist.conf': 'http_access allow all\n' }, include: 'allowlist.conf' },
  smokescreen: {
    acl: JSON.stringify({
      version: 'v1',
      services: [],
      default: { name: 'default', project: 'any', action: 'open' },
    }),
    flags: ['--unsafe-allow-private-ranges', '--allow-range=169.254.0.0/16'],
  },
};
