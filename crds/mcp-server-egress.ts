// What may be reached for one remote server: hosts, ports, and private addresses that a named
// host may have. Absence never widens: without a listed host nothing is reached.

import { CIDR_PATTERN, isCidr } from '#core/egress/cidr-text.ts';

import { SET, dnsSubdomain, int, list, mapBy, object, text } from './field-schemas.ts';
import { hostRule, remoteUrl, singleLabelRule } from './remote-url-rules.ts';
import { withRules } from './rule.ts';

const cidr = withRules(
  text('An address range.', {
    max: 43,
    pattern: CIDR_PATTERN,
    hint: 'must be an address range like "10.0.0.0/24" or "fd00::/64"',
  }),
  [
    {
      cel: "isCIDR(self) && !(self.contains(':') && self.contains('.'))",
      message: 'must be an address range like "10.0.0.0/24" or "fd00::/64"',
      check: isCidr,
    },
  ],
);

const port = (): ReturnType<typeof int> => int('A TCP port.', 1, 65_535);

const caBundleRef = object(
  "PEM certificates that are trusted besides the system's roots, from a ConfigMap in the server's namespace.",
  {
    name: dnsSubdomain('Name of the ConfigMap.'),
    key: text('Key in the ConfigMap.', {
      max: 253,
      pattern: '^[A-Za-z0-9._-]+$',
      hint: 'must be a ConfigMap key: letters, digits, "-", "_" and "."',
    }).default('ca.crt'),
  },
);

const inClusterException = object('One host that may have private addresses.', {
  host: hostRule(
    'The host, exact or "*.suffix"; it must also be listed in allowedHosts when an endpoint uses it.',
    'exception',
  ),
  cidrs: list("Address ranges that the host's addresses must be in.", cidr, {
    min: 1,
    max: 16,
    kind: SET,
  }),
  ports: list('Ports of this host; allowedPorts does not apply to it.', port(), {
    min: 1,
    max: 16,
    kind: SET,
  }),
});

const egressFields = object('What may be reached for this server. Everything else is refused.', {
  allowedHosts: list(
    'Hosts that may be reached: exact names, or "*.example.com" for every name below example.com (any depth, never example.com itself). Must not be empty.',
    hostRule('A host name, or "*." and a suffix.', 'allowed-host'),
    { min: 1, max: 64, kind: SET },
  ),
  allowedPorts: list('Ports that may be reached on allowed hosts.', port(), {
    min: 1,
    max: 16,
    kind: SET,
  }).default([443]),
  inClusterExceptions: list(
    'Private addresses that one named host may have: host, address and port must all match. Without an exception private addresses are refused.',
    inClusterException,
    { max: 32, kind: mapBy('host') },
  ).default([]),
  caBundleRef: caBundleRef.optional(),
  issuers: list(
    'Authorization servers that may be reached, by issuer URL. Only OAuth uses them.',
    remoteUrl("The issuer's URL."),
    { max: 16, kind: SET },
  ).default([]),
});

export const egressSchema = withRules(egressFields, [singleLabelRule]);
