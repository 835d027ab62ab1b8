// Every kind of bad URL, as endpoint, as OAuth resource and as redirect URI: one check for all.

import { NONE } from './bad-object.ts';
import type { BadObject } from './bad-object.ts';

/** Hosts and ports that are not listed come after: what is wrong here is the form. */
const BAD_FORMS: readonly (readonly [string, string])[] = [
  ['an empty URL', ''],
  ['a URL without scheme', 'mcp.example.com/mcp'],
  ['a relative URL', '/mcp'],
  ['a URL with another scheme', 'ftp://mcp.example.com/mcp'],
  ['a scheme in upper case', 'HTTPS://mcp.example.com/mcp'],
  ['a host in upper case', 'https://MCP.example.com/mcp'],
  ['plain http', 'http://mcp.example.com/mcp'],
  ['plain http to a loopback host', 'http://localhost:3000/mcp'],
  ['user information', 'https://user:secret@mcp.example.com/mcp'],
  ['an empty user', 'https://@mcp.example.com/mcp'],
  ['a query', 'https://mcp.example.com/mcp?tenant=1'],
  ['an empty query', 'https://mcp.example.com/mcp?'],
  ['a fragment', 'https://mcp.example.com/mcp#top'],
  ['percent-encoding', 'https://mcp.example.com/%6dcp'],
  ['a percent-encoded host', 'https://mcp%2eexample.com/mcp'],
  ['a ".." segment', 'https://mcp.example.com/a/../mcp'],
  ['a "." segment at the end', 'https://mcp.example.com/mcp/.'],
  ['a back slash', 'https://mcp.example.com\\@evil.example'],
  ['a blank', 'https://mcp.example.com/m cp'],
  ['a line break', 'https://mcp.example.com/mcp\n'],
  ['a tab in the host', 'https://mcp.exa\tmple.com/mcp'],
  ['letters outside ASCII', 'https://mcp.exämple.com/mcp'],
  ['a trailing dot in the host', 'https://mcp.example.com./mcp'],
  ['an empty host label', 'https://mcp..example.com/mcp'],
  ['an empty host', 'https:///mcp'],
  ['an empty port', 'https://mcp.example.com:/mcp'],
  ['port 0', 'https://mcp.example.com:0/mcp'],
  ['a port with a leading zero', 'https://mcp.example.com:0443/mcp'],
  ['a port above 65535', 'https://mcp.example.com:65536/mcp'],
  ['a port that is no number', 'https://mcp.example.com:https/mcp'],
  ['an IPv4 address', 'https://10.0.0.1/mcp'],
  ['a short IPv4 address', 'https://127.1/mcp'],
  ['a decimal address', 'https://2130706433/mcp'],
  ['a hexadecimal address', 'https://0x7f000001/mcp'],
  ['a host whose last label is a number', 'https://mcp.example.1/mcp'],
  ['an IPv6 address', 'https://[::1]:443/mcp'],
  ['an IPv6 address that carries IPv4', 'https://[::ffff:7f00:1]/mcp'],
  ['an IPv6 zone', 'https://[fe80::1%25eth0]/mcp'],
  ['more than 2048 characters', `https://mcp.example.com/${'a'.repeat(2048)}`],
];

const endpoints = BAD_FORMS.map(
  ([what, url]): BadObject => ({
    title: `${what} as endpoint`,
    on: 'server',
    change: { 'spec.endpoint': url },
    path: 'spec.endpoint',
    sidecar: { config: { 'servers[0].endpoint': url }, path: 'servers[0].endpoint' },
    proves: 'R2',
  }),
);

const resources = BAD_FORMS.map(
  ([what, url]): BadObject => ({
    title: `${what} as resource`,
    on: 'oauth-server',
    change: { 'spec.authorization.oauth.resource': url },
    path: 'spec.authorization.oauth.resource',
    sidecar: { config: { 'servers[0].resource': url }, path: 'servers[0].resource' },
    proves: 'R2',
  }),
);

const redirects = BAD_FORMS.map(
  ([what, url]): BadObject => ({
    title: `${what} as redirect URI`,
    on: 'oauth-server',
    change: { 'spec.authorization.oauth.redirectUri': url },
    path: 'spec.authorization.oauth.redirectUri',
    sidecar: NONE.authorization,
    proves: 'R2',
  }),
);

const UNLISTED: readonly (readonly [string, string])[] = [
  ['an unlisted host', 'https://other.example.com/mcp'],
  ['the apex of a wildcard', 'https://cluster.example/mcp'],
  ['a host that only ends like a wildcard', 'https://evilcluster.example/mcp'],
  ['an unlisted port', 'https://mcp.example.com:8443/mcp'],
  ['a port of allowedPorts on a host that has an exception', 'https://mcp.cluster.example/mcp'],
];

const unlisted = UNLISTED.flatMap(([what, url]): readonly BadObject[] => [
  {
    title: `${what} in endpoint`,
    on: 'server',
    change: { 'spec.endpoint': url },
    path: 'spec.endpoint',
    sidecar: { config: { 'servers[0].endpoint': url }, path: 'servers[0].endpoint' },
    proves: 'R2',
  },
  {
    title: `${what} in resource`,
    on: 'oauth-server',
    change: { 'spec.authorization.oauth.resource': url },
    path: 'spec.authorization.oauth.resource',
    sidecar: { config: { 'servers[0].resource': url }, path: 'servers[0].resource' },
    proves: 'R2',
  },
]);

const LOCALHOST = [{ host: 'localhost', cidrs: ['127.0.0.0/8'], ports: [3000, 80] }];

const plainHttp: readonly BadObject[] = [
  ['plain http to an address of the loopback net', 'http://127.0.0.1:3000/mcp'],
  ['plain http to the IPv6 loopback address', 'http://[::1]:3000/mcp'],
  ['plain http without a port', 'http://localhost/mcp'],
].map(
  ([what = '', url = '']): BadObject => ({
    title: `${what}, outside development mode`,
    on: 'server',
    change: {
      'spec.endpoint': url,
      'spec.egress.allowedHosts': ['localhost'],
      'spec.egress.allowedPorts': [3000, 80],
      'spec.egress.inClusterExceptions': LOCALHOST,
    },
    path: 'spec.endpoint',
    sidecar: {
      config: {
        'servers[0].endpoint': url,
        'servers[0].egress.allowedHosts': ['localhost'],
        'servers[0].egress.inClusterExceptions': LOCALHOST,
      },
      path: 'servers[0].endpoint',
    },
    proves: 'R3',
  }),
);

export const BAD_URLS: readonly BadObject[] = [
  ...endpoints,
  ...resources,
  ...redirects,
  ...unlisted,
  ...plainHttp,
];
