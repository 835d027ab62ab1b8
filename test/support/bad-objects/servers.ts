// Bad McpServers: missing and empty fields, wrong types, host rules, ports, exceptions, tools.

import { NONE } from './bad-object.ts';
import type { BadObject } from './bad-object.ts';

const at = 'servers[0]';

/** `[what, field below spec, value, field to blame]`, and the rendered twin at the same place. */
function egressRow(what: string, field: string, value: unknown, blamed: string = field): BadObject {
  return {
    title: what,
    on: 'server',
    change: { [`spec.egress.${field}`]: value },
    path: `spec.egress.${blamed}`,
    sidecar: { config: { [`${at}.egress.${field}`]: value }, path: `${at}.egress.${blamed}` },
    proves: 'R1',
  };
}

function unknownRow(what: string, field: string): BadObject {
  return { title: what, on: 'server', change: { [field]: 1 }, path: field, sidecar: NONE.unknown, proves: 'R7', isUnknownField: true };
}

const missing: readonly BadObject[] = [
  { title: 'a server without spec', on: 'server', change: { spec: undefined }, path: 'spec', sidecar: { config: { servers: undefined }, path: 'servers' }, proves: 'R1' },
  { title: 'a server without endpoint', on: 'server', change: { 'spec.endpoint': undefined }, path: 'spec.endpoint', sidecar: { config: { [`${at}.endpoint`]: undefined }, path: `${at}.endpoint` }, proves: 'R1' },
  { title: 'a null endpoint', on: 'server', change: { 'spec.endpoint': null }, path: 'spec.endpoint', sidecar: { config: { [`${at}.endpoint`]: null }, path: `${at}.endpoint` }, proves: 'R1' },
  { title: 'a server without egress', on: 'server', change: { 'spec.egress': undefined }, path: 'spec.egress', sidecar: { config: { [`${at}.egress`]: undefined }, path: `${at}.egress` }, proves: 'R1' },
  { title: 'egress without allowed hosts', on: 'server', change: { 'spec.egress.allowedHosts': undefined }, path: 'spec.egress.allowedHosts', sidecar: { config: { [`${at}.egress.allowedHosts`]: undefined }, path: `${at}.egress.allowedHosts` }, proves: 'R1' },
  { title: 'a server without tools', on: 'server', change: { 'spec.tools': undefined }, path: 'spec.tools', sidecar: { config: { [`${at}.tools`]: undefined }, path: `${at}.tools` }, proves: 'R1' },
  { title: 'tools without an allow list', on: 'server', change: { 'spec.tools.allow': undefined }, path: 'spec.tools.allow', sidecar: { config: { [`${at}.tools.allow`]: undefined }, path: `${at}.tools.allow` }, proves: 'R1' },
];

const unknown: readonly BadObject[] = [
  unknownRow('an unknown field of spec', 'spec.endpiont'),
  unknownRow('an unknown nested field', 'spec.egress.allowedHost'),
  unknownRow('an unknown field of a list item', 'spec.egress.inClusterExceptions[0].port'),
  unknownRow('an unknown field beside spec', 'specs'),
  unknownRow('an unknown field of metadata', 'metadata.label'),
  unknownRow('a field that only "fairlead dev" has', 'spec.stdio'),
];

const wrongTypes: readonly BadObject[] = [
  { title: 'a boolean as text', on: 'server', change: { 'spec.suspend': 'yes' }, path: 'spec.suspend', sidecar: { none: 'a suspended server is not rendered' }, proves: 'R7' },
  { title: 'a list as text', on: 'server', change: { 'spec.tools.allow': 'get_*' }, path: 'spec.tools.allow', sidecar: { config: { [`${at}.tools.allow`]: 'get_*' }, path: `${at}.tools.allow` }, proves: 'R7' },
  { title: 'an object as list', on: 'server', change: { 'spec.limits': [] }, path: 'spec.limits', sidecar: { config: { [`${at}.limits`]: [] }, path: `${at}.limits` }, proves: 'R7' },
  { title: 'a number as text', on: 'server', change: { 'spec.priority': '5' }, path: 'spec.priority', sidecar: { config: { [`${at}.priority`]: '5' }, path: `${at}.priority` }, proves: 'R7' },
  { title: 'a fraction', on: 'server', change: { 'spec.limits.maxConcurrency': 1.5 }, path: 'spec.limits.maxConcurrency', sidecar: { config: { [`${at}.limits.maxConcurrency`]: 1.5 }, path: `${at}.limits.maxConcurrency` }, proves: 'R7' },
  { title: 'a null in a list', on: 'server', change: { 'spec.tools.allow': ['get_*', null] }, path: 'spec.tools.allow[1]', sidecar: { config: { [`${at}.tools.allow[0]`]: ['get_*', null] }, path: `${at}.tools.allow[0][1]` }, proves: 'R7' },
];

const values: readonly BadObject[] = [
  { title: 'an unknown transport', on: 'server', change: { 'spec.transport': 'Carrier' }, path: 'spec.transport', sidecar: { config: { [`${at}.transport`]: 'Carrier' }, path: `${at}.transport` }, proves: 'R1' },
  { title: 'an unknown era', on: 'server', change: { 'spec.protocol': { era: 'Future' } }, path: 'spec.protocol.era', sidecar: { config: { [`${at}.protocol.era`]: 'Future' }, path: `${at}.protocol.era` }, proves: 'R1' },
  { title: 'no protocol versions', on: 'server', change: { 'spec.protocol': { versions: [] } }, path: 'spec.protocol.versions', sidecar: { config: { [`${at}.protocol.versions`]: [] }, path: `${at}.protocol.versions` }, proves: 'R1' },
  { title: 'an unknown protocol version', on: 'server', change: { 'spec.protocol': { versions: ['2024-11-05'] } }, path: 'spec.protocol.versions[0]', sidecar: { config: { [`${at}.protocol.versions`]: ['2024-11-05'] }, path: `${at}.protocol.versions[0]` }, proves: 'R1' },
  { title: 'a protocol version that is there twice', on: 'server', change: { 'spec.protocol': { versions: ['2025-11-25', '2025-11-25'] } }, path: 'spec.protocol.versions[1]', sidecar: NONE.repeated, proves: 'R1' },
  { title: 'a priority out of range', on: 'server', change: { 'spec.priority': 1001 }, path: 'spec.priority', sidecar: { config: { [`${at}.priority`]: 1001 }, path: `${at}.priority` }, proves: 'R5' },
  { title: 'no allowed tools', on: 'server', change: { 'spec.tools.allow': [] }, path: 'spec.tools.allow', sidecar: { config: { [`${at}.tools.allow[0]`]: [] }, path: `${at}.tools.allow[0]` }, proves: 'R1' },
  { title: 'an empty tool name', on: 'server', change: { 'spec.tools.allow': [''] }, path: 'spec.tools.allow[0]', sidecar: { config: { [`${at}.tools.allow[0]`]: [''] }, path: `${at}.tools.allow[0][0]` }, proves: 'R1' },
  { title: 'a tool pattern with a regular expression in it', on: 'server', change: { 'spec.tools.allow': ['get_(.+)'] }, path: 'spec.tools.allow[0]', sidecar: { config: { [`${at}.tools.allow[0]`]: ['get_(.+)'] }, path: `${at}.tools.allow[0][0]` }, proves: 'R1' },
  { title: 'a tool pattern that is there twice', on: 'server', change: { 'spec.tools.allow': ['a', 'a'] }, path: 'spec.tools.allow[1]', sidecar: NONE.repeated, proves: 'R1' },
  { title: 'an override without effect', on: 'server', change: { 'spec.tools.overrides': [{ name: 'a' }] }, path: 'spec.tools.overrides[0].effect', sidecar: { config: { [`${at}.tools.overrides`]: [{ name: 'a' }] }, path: `${at}.tools.overrides[0].effect` }, proves: 'R1' },
  { title: 'an override with an unknown effect', on: 'server', change: { 'spec.tools.overrides': [{ name: 'a', effect: 'Maybe' }] }, path: 'spec.tools.overrides[0].effect', sidecar: { config: { [`${at}.tools.overrides`]: [{ name: 'a', effect: 'Maybe' }] }, path: `${at}.tools.overrides[0].effect` }, proves: 'R1' },
  { title: 'an override of a pattern', on: 'server', change: { 'spec.tools.overrides': [{ name: 'a*', effect: 'Write' }] }, path: 'spec.tools.overrides[0].name', sidecar: { none: 'an override of a pattern matches no tool' }, proves: 'R1' },
  { title: 'two overrides of one tool', on: 'server', change: { 'spec.tools.overrides': [{ name: 'a', effect: 'Write' }, { name: 'a', effect: 'ReadOnly' }] }, path: 'spec.tools.overrides[1]', sidecar: { none: 'the API server keeps overrides unique by name' }, proves: 'R1' },
  { title: 'a selector without labels', on: 'server', change: { 'spec.allowedNamespaces': { from: 'Selector', selector: { matchLabels: {} } } }, path: 'spec.allowedNamespaces.selector.matchLabels', sidecar: NONE.namespaces, proves: 'R1' },
  { title: 'from Selector without a selector', on: 'server', change: { 'spec.allowedNamespaces': { from: 'Selector' } }, path: 'spec.allowedNamespaces.selector', sidecar: NONE.namespaces, proves: 'R1' },
  { title: 'a selector that from does not ask for', on: 'server', change: { 'spec.allowedNamespaces': { from: 'All', selector: { matchLabels: { a: 'b' } } } }, path: 'spec.allowedNamespaces.selector', sidecar: NONE.namespaces, proves: 'R1' },
  { title: 'an unknown way to allow namespaces', on: 'server', change: { 'spec.allowedNamespaces': { from: 'Some' } }, path: 'spec.allowedNamespaces.from', sidecar: NONE.namespaces, proves: 'R1' },
  { title: 'a name in upper case', on: 'server', change: { 'metadata.name': 'Issues' }, path: 'metadata.name', sidecar: NONE.metadata, proves: 'R1' },
];

const egress: readonly BadObject[] = [
  egressRow('no allowed hosts', 'allowedHosts', []),
  egressRow('an allowed host in upper case', 'allowedHosts', ['mcp.example.com', 'MCP.example.com'], 'allowedHosts[1]'),
  egressRow('an allowed host with a trailing dot', 'allowedHosts', ['mcp.example.com', 'example.com.'], 'allowedHosts[1]'),
  egressRow('an allowed host with a port', 'allowedHosts', ['mcp.example.com', 'example.com:443'], 'allowedHosts[1]'),
  egressRow('an allowed host that is a URL', 'allowedHosts', ['mcp.example.com', 'https://example.com'], 'allowedHosts[1]'),
  egressRow('a wildcard inside a host', 'allowedHosts', ['mcp.example.com', 'mcp.*.com'], 'allowedHosts[1]'),
  egressRow('a bare wildcard as host', 'allowedHosts', ['mcp.example.com', '*'], 'allowedHosts[1]'),
  egressRow('an IPv4 address as host', 'allowedHosts', ['mcp.example.com', '10.0.0.1'], 'allowedHosts[1]'),
  egressRow('an IPv6 address as host', 'allowedHosts', ['mcp.example.com', '[::1]'], 'allowedHosts[1]'),
  egressRow('a number as host', 'allowedHosts', ['mcp.example.com', '2130706433'], 'allowedHosts[1]'),
  egressRow('a hexadecimal number as last label', 'allowedHosts', ['mcp.example.com', '*.0x7f'], 'allowedHosts[1]'),
  egressRow('a host of more than 253 characters', 'allowedHosts', ['mcp.example.com', `${'a.'.repeat(130)}com`], 'allowedHosts[1]'),
  { ...egressRow('a host that is there twice', 'allowedHosts', ['mcp.example.com', 'mcp.example.com'], 'allowedHosts[1]'), sidecar: NONE.repeated },
  egressRow('more than 64 hosts', 'allowedHosts', ['mcp.example.com', ...Array.from({ length: 64 }, (_, index) => `h${index}.example.com`)], 'allowedHosts'),
  egressRow('no allowed ports', 'allowedPorts', []),
  egressRow('port 0', 'allowedPorts', [443, 0], 'allowedPorts[1]'),
  egressRow('port 65536', 'allowedPorts', [443, 65_536], 'allowedPorts[1]'),
  egressRow('an exception without addresses', 'inClusterExceptions', [{ host: 'mcp.cluster.example', cidrs: [], ports: [8443] }], 'inClusterExceptions[0].cidrs'),
  egressRow('an exception without ports', 'inClusterExceptions', [{ host: 'mcp.cluster.example', cidrs: ['10.0.0.0/24'] }], 'inClusterExceptions[0].ports'),
  egressRow('an exception with a single address', 'inClusterExceptions', [{ host: 'mcp.cluster.example', cidrs: ['10.0.0.1'], ports: [443] }], 'inClusterExceptions[0].cidrs[0]'),
  egressRow('an exception with a prefix that is too long', 'inClusterExceptions', [{ host: 'mcp.cluster.example', cidrs: ['10.0.0.0/33'], ports: [443] }], 'inClusterExceptions[0].cidrs[0]'),
  egressRow('an exception with a leading zero in an address', 'inClusterExceptions', [{ host: 'mcp.cluster.example', cidrs: ['010.0.0.0/8'], ports: [443] }], 'inClusterExceptions[0].cidrs[0]'),
  egressRow('an exception with an IPv4 address inside IPv6', 'inClusterExceptions', [{ host: 'mcp.cluster.example', cidrs: ['::ffff:10.0.0.0/104'], ports: [443] }], 'inClusterExceptions[0].cidrs[0]'),
  egressRow('an exception with a mapped IPv4 address in hexadecimal', 'inClusterExceptions', [{ host: 'mcp.cluster.example', cidrs: ['::ffff:a00:0/104'], ports: [443] }], 'inClusterExceptions[0].cidrs[0]'),
  egressRow('an exception with an IPv4-compatible address', 'inClusterExceptions', [{ host: 'mcp.cluster.example', cidrs: ['::10.0.0.0/104'], ports: [443] }], 'inClusterExceptions[0].cidrs[0]'),
  egressRow('an exception for an address', 'inClusterExceptions', [{ host: '10.0.0.1', cidrs: ['10.0.0.0/24'], ports: [443] }], 'inClusterExceptions[0].host'),
  {
    ...egressRow('two exceptions for one host', 'inClusterExceptions', [
      { host: 'a.cluster.example', cidrs: ['10.0.0.0/24'], ports: [443] },
      { host: 'a.cluster.example', cidrs: ['10.0.1.0/24'], ports: [443] },
    ], 'inClusterExceptions[1]'),
    sidecar: NONE.repeated,
  },
  { title: 'a CA bundle without the name of a ConfigMap', on: 'server', change: { 'spec.egress.caBundleRef': { key: 'ca.crt' } }, path: 'spec.egress.caBundleRef.name', sidecar: NONE.reference, proves: 'R1' },
  { title: 'a CA bundle key that is a path', on: 'server', change: { 'spec.egress.caBundleRef': { name: 'ca', key: '../ca.crt' } }, path: 'spec.egress.caBundleRef.key', sidecar: NONE.reference, proves: 'R1' },
];

export const BAD_SERVERS: readonly BadObject[] = [...missing, ...unknown, ...wrongTypes, ...values, ...egress];
