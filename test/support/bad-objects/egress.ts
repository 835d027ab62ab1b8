// Bad egress of McpServers: host rules, ports, in-cluster exceptions, the CA bundle.

import { NONE, twin } from './bad-object.ts';
import type { BadObject } from './bad-object.ts';

/** The field below spec.egress, its value, the field to blame when it is another one. */
type Row = readonly [
  title: string,
  field: string,
  value: unknown,
  blamed?: string,
  sidecar?: BadObject['sidecar'],
];

const ROWS: readonly Row[] = [
  ['no allowed hosts', 'allowedHosts', []],
  [
    'an allowed host in upper case',
    'allowedHosts',
    ['mcp.example.com', 'MCP.example.com'],
    'allowedHosts[1]',
  ],
  [
    'an allowed host with a trailing dot',
    'allowedHosts',
    ['mcp.example.com', 'example.com.'],
    'allowedHosts[1]',
  ],
  [
    'an allowed host with a port',
    'allowedHosts',
    ['mcp.example.com', 'example.com:443'],
    'allowedHosts[1]',
  ],
  [
    'an allowed host that is a URL',
    'allowedHosts',
    ['mcp.example.com', 'https://example.com'],
    'allowedHosts[1]',
  ],
  ['a wildcard inside a host', 'allowedHosts', ['mcp.example.com', 'mcp.*.com'], 'allowedHosts[1]'],
  ['a bare wildcard as host', 'allowedHosts', ['mcp.example.com', '*'], 'allowedHosts[1]'],
  ['an IPv4 address as host', 'allowedHosts', ['mcp.example.com', '10.0.0.1'], 'allowedHosts[1]'],
  ['an IPv6 address as host', 'allowedHosts', ['mcp.example.com', '[::1]'], 'allowedHosts[1]'],
  ['a number as host', 'allowedHosts', ['mcp.example.com', '2130706433'], 'allowedHosts[1]'],
  [
    'a hexadecimal number as last label',
    'allowedHosts',
    ['mcp.example.com', '*.0x7f'],
    'allowedHosts[1]',
  ],
  [
    'a single label that no exception names',
    'allowedHosts',
    ['mcp.example.com', 'files'],
    'allowedHosts',
    twin('egress.allowedHosts', ['mcp.example.com', 'files'], 'egress.allowedHosts[1]'),
  ],
  [
    'localhost as host',
    'allowedHosts',
    ['mcp.example.com', 'localhost'],
    'allowedHosts',
    twin('egress.allowedHosts', ['mcp.example.com', 'localhost'], 'egress.allowedHosts[1]'),
  ],
  [
    'a wildcard over a top-level domain',
    'allowedHosts',
    ['mcp.example.com', '*.com'],
    'allowedHosts[1]',
  ],
  [
    'a wildcard over all Services',
    'allowedHosts',
    ['mcp.example.com', '*.svc.cluster.local'],
    'allowedHosts[1]',
  ],
  [
    'a wildcard over the cluster',
    'allowedHosts',
    ['mcp.example.com', '*.cluster.local'],
    'allowedHosts[1]',
  ],
  [
    'a wildcard over one namespace',
    'allowedHosts',
    ['mcp.example.com', '*.tools.svc'],
    'allowedHosts[1]',
  ],
  [
    'a wildcard over internal names',
    'allowedHosts',
    ['mcp.example.com', '*.corp.internal'],
    'allowedHosts[1]',
  ],
  [
    'a metadata service as host',
    'allowedHosts',
    ['mcp.example.com', 'metadata.google.internal'],
    'allowedHosts[1]',
  ],
  [
    'the API server as host',
    'allowedHosts',
    ['mcp.example.com', 'kubernetes.default.svc'],
    'allowedHosts[1]',
  ],
  [
    'a label of 64 characters',
    'allowedHosts',
    ['mcp.example.com', `${'a'.repeat(64)}.example.com`],
    'allowedHosts[1]',
  ],
  [
    'two hosts in one entry',
    'allowedHosts',
    ['mcp.example.com', 'a.example.com b.example.com'],
    'allowedHosts[1]',
  ],
  [
    'a line break in a host',
    'allowedHosts',
    ['mcp.example.com', 'a.example.com\nb.example.com'],
    'allowedHosts[1]',
  ],
  ['an empty label', 'allowedHosts', ['mcp.example.com', 'mcp..example.com'], 'allowedHosts[1]'],
  [
    'a host of more than 253 characters',
    'allowedHosts',
    ['mcp.example.com', `${'a.'.repeat(130)}com`],
    'allowedHosts[1]',
  ],
  [
    'a host that is there twice',
    'allowedHosts',
    ['mcp.example.com', 'mcp.example.com'],
    'allowedHosts[1]',
    NONE.repeated,
  ],
  [
    'more than 64 hosts',
    'allowedHosts',
    ['mcp.example.com', ...Array.from({ length: 64 }, (_, index) => `h${index}.example.com`)],
    'allowedHosts',
  ],
  ['no allowed ports', 'allowedPorts', []],
  ['port 0', 'allowedPorts', [443, 0], 'allowedPorts[1]'],
  ['port 65536', 'allowedPorts', [443, 65_536], 'allowedPorts[1]'],
  [
    'an exception without addresses',
    'inClusterExceptions',
    [{ host: 'mcp.cluster.example', cidrs: [], ports: [8443] }],
    'inClusterExceptions[0].cidrs',
  ],
  [
    'an exception without ports',
    'inClusterExceptions',
    [{ host: 'mcp.cluster.example', cidrs: ['10.0.0.0/24'] }],
    'inClusterExceptions[0].ports',
  ],
  [
    'an exception with a single address',
    'inClusterExceptions',
    [{ host: 'mcp.cluster.example', cidrs: ['10.0.0.1'], ports: [443] }],
    'inClusterExceptions[0].cidrs[0]',
  ],
  [
    'an exception with a prefix that is too long',
    'inClusterExceptions',
    [{ host: 'mcp.cluster.example', cidrs: ['10.0.0.0/33'], ports: [443] }],
    'inClusterExceptions[0].cidrs[0]',
  ],
  [
    'an exception with a leading zero in an address',
    'inClusterExceptions',
    [{ host: 'mcp.cluster.example', cidrs: ['010.0.0.0/8'], ports: [443] }],
    'inClusterExceptions[0].cidrs[0]',
  ],
  [
    'an exception with an IPv4 address inside IPv6',
    'inClusterExceptions',
    [{ host: 'mcp.cluster.example', cidrs: ['::ffff:10.0.0.0/104'], ports: [443] }],
    'inClusterExceptions[0].cidrs[0]',
  ],
  [
    'an exception with a mapped IPv4 address in hexadecimal',
    'inClusterExceptions',
    [{ host: 'mcp.cluster.example', cidrs: ['::ffff:a00:0/104'], ports: [443] }],
    'inClusterExceptions[0].cidrs[0]',
  ],
  [
    'an exception with an IPv4-compatible address',
    'inClusterExceptions',
    [{ host: 'mcp.cluster.example', cidrs: ['::10.0.0.0/104'], ports: [443] }],
    'inClusterExceptions[0].cidrs[0]',
  ],
  [
    'an exception for an address',
    'inClusterExceptions',
    [{ host: '10.0.0.1', cidrs: ['10.0.0.0/24'], ports: [443] }],
    'inClusterExceptions[0].host',
  ],
  [
    'an exception for all Services',
    'inClusterExceptions',
    [{ host: '*.svc.cluster.local', cidrs: ['10.0.0.0/24'], ports: [443] }],
    'inClusterExceptions[0].host',
  ],
  [
    'an exception for a metadata service',
    'inClusterExceptions',
    [{ host: 'metadata.google.internal', cidrs: ['10.0.0.0/24'], ports: [443] }],
    'inClusterExceptions[0].host',
  ],
  [
    'two exceptions for one host',
    'inClusterExceptions',
    [
      { host: 'a.cluster.example', cidrs: ['10.0.0.0/24'], ports: [443] },
      { host: 'a.cluster.example', cidrs: ['10.0.1.0/24'], ports: [443] },
    ],
    'inClusterExceptions[1]',
    NONE.repeated,
  ],
  [
    'a CA bundle without the name of a ConfigMap',
    'caBundleRef',
    { key: 'ca.crt' },
    'caBundleRef.name',
    NONE.reference,
  ],
  [
    'a CA bundle key that is a path',
    'caBundleRef',
    { name: 'ca', key: '../ca.crt' },
    'caBundleRef.key',
    NONE.reference,
  ],
];

export const BAD_EGRESS = ROWS.map(
  ([title, field, value, blamed = field, sidecar]): BadObject => ({
    title,
    on: 'server',
    change: { [`spec.egress.${field}`]: value },
    path: `spec.egress.${blamed}`,
    sidecar: sidecar ?? twin(`egress.${field}`, value, `egress.${blamed}`),
    proves: 'R1',
  }),
);
