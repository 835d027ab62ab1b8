import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { decideAddress, decideUrl } from '#core/egress/decide-egress.ts';
import type { EgressPolicy, EgressVerdict } from '#core/egress/egress-policy.ts';

const production: EgressPolicy = {
  allowedHosts: ['mcp.example.com', '*.tenant.example.net', 'files.tools.svc.cluster.local'],
  allowedPorts: [443, 8443],
  inClusterExceptions: [
    {
      host: 'files.tools.svc.cluster.local',
      cidrs: ['10.96.0.0/12', 'fd00:10::/32'],
      ports: [9443],
    },
  ],
  development: false,
};
const development: EgressPolicy = {
  allowedHosts: ['localhost', '127.0.0.1', '[::1]', 'mcp.example.com'],
  allowedPorts: [443],
  inClusterExceptions: [],
  development: true,
};

function wordOf(verdict: EgressVerdict): string {
  return verdict.kind === 'allow' ? 'allow' : verdict.reason;
}

suite('decideUrl', () => {
  const rows: readonly (readonly [EgressPolicy, string, string])[] = [
    [production, 'https://mcp.example.com/mcp', 'allow'],
    [production, 'https://mcp.example.com:8443/mcp?x=1', 'allow'],
    [production, 'https://a.b.tenant.example.net/', 'allow'],
    [production, 'https://tenant.example.net/', 'host-not-listed'],
    [production, 'https://MCP.example.com/', 'allow'],
    [production, 'https://mcp.example.com./', 'trailing-dot'],
    [production, 'https://"x.tenant.example.net/', 'host-form'],
    [production, 'https://x..tenant.example.net/', 'host-form'],
    [production, `https://${'x'.repeat(64)}.tenant.example.net/`, 'host-form'],
    [production, `https://${'x.'.repeat(120)}tenant.example.net/`, 'host-form'],
    [production, 'https://user@mcp.example.com/', 'user-information'],
    [production, 'https://:x@mcp.example.com/', 'user-information'],
    [production, 'http://mcp.example.com/', 'plain-http'],
    [production, 'http://localhost:3000/', 'plain-http'],
    [production, 'ws://mcp.example.com/', 'scheme'],
    [production, 'file:///etc/passwd', 'scheme'],
    [production, 'https://mcp.example.com:22/', 'port-not-listed'],
    [development, 'http://localhost:0/', 'port-not-listed'],
    [production, 'https://files.tools.svc.cluster.local:9443/', 'allow'],
    [production, 'https://files.tools.svc.cluster.local/', 'port-not-listed'],
    [production, 'https://8.8.8.8/', 'ip-literal'],
    [production, 'https://127.0.0.1:8443/', 'ip-literal'],
    [development, 'http://localhost:3000/mcp', 'allow'],
    [development, 'https://localhost:3000/mcp', 'allow'],
    [development, 'http://127.0.0.1:3000/mcp', 'allow'],
    [development, 'http://[::1]:3000/mcp', 'allow'],
    [development, 'http://127.0.0.2:3000/mcp', 'host-not-listed'],
    [development, 'http://mcp.example.com/', 'plain-http'],
    [development, 'http://192.168.1.10:8080/', 'plain-http'],
    [development, 'https://192.168.1.10/', 'ip-literal'],
    [development, 'http://[::ffff:127.0.0.1]:3000/', 'plain-http'],
  ];
  for (const [policy, url, word] of rows) {
    test(`${policy.development ? 'development' : 'production'}: ${url} gives ${word}`, () => {
      assert.equal(wordOf(decideUrl(policy, new URL(url))), word);
    });
  }

  test('an empty policy reaches nothing', () => {
    const empty: EgressPolicy = {
      allowedHosts: [],
      allowedPorts: [],
      inClusterExceptions: [],
      development: false,
    };
    assert.equal(decideUrl(empty, new URL('https://mcp.example.com/')).kind, 'deny');
  });
});

suite('decideAddress', () => {
  const inCluster = 'files.tools.svc.cluster.local';
  const rows: readonly (readonly [EgressPolicy, string, number, string, string])[] = [
    [production, 'mcp.example.com', 443, '93.184.215.14', 'allow'],
    [production, 'mcp.example.com', 443, '10.96.0.1', 'special-address'],
    [production, 'mcp.example.com', 443, 'not an address', 'special-address'],
    [production, inCluster, 9443, '10.96.4.20', 'allow'],
    [production, inCluster, 9443, '::ffff:10.96.4.20', 'allow'],
    [production, inCluster, 9443, 'fd00:10::7', 'allow'],
    [production, inCluster, 443, '10.96.4.20', 'outside-exception'],
    [production, inCluster, 9443, '10.0.0.1', 'outside-exception'],
    [production, inCluster, 9443, '93.184.215.14', 'outside-exception'],
    [production, inCluster, 9443, '169.254.169.254', 'special-address'],
    [development, 'localhost', 3000, '127.0.0.1', 'allow'],
    [development, 'localhost', 3000, '::1', 'allow'],
    [development, 'localhost', 3000, '93.184.215.14', 'not-loopback'],
    [development, 'localhost', 3000, '10.0.0.1', 'not-loopback'],
    [development, 'mcp.example.com', 443, '127.0.0.1', 'special-address'],
  ];
  for (const [policy, host, port, address, word] of rows) {
    test(`${policy.development ? 'development' : 'production'}: ${host}:${port} at ${address} gives ${word}`, () => {
      assert.equal(wordOf(decideAddress(policy, { host, port, address, stage: 'resolve' })), word);
    });
  }

  const never = [
    '169.254.169.254',
    '168.63.129.16',
    'fd00:ec2::254',
    '224.0.0.1',
    '255.255.255.255',
    '0.0.0.0',
    'fe80::1%eth0',
  ];
  for (const address of never) {
    test(`no exception opens ${address}, not even one for every address`, () => {
      const everything = { host: 'h.example.com', cidrs: ['0.0.0.0/0', '::/0'], ports: [443] };
      const policy = { ...production, inClusterExceptions: [everything] };
      assert.equal(
        wordOf(
          decideAddress(policy, { host: 'h.example.com', port: 443, address, stage: 'resolve' }),
        ),
        'special-address',
      );
    });
  }

  test('an IPv6 exception never opens an IPv4 address', () => {
    const policy = {
      ...production,
      inClusterExceptions: [{ host: 'h.example.com', cidrs: ['::/0'], ports: [443] }],
    };
    assert.equal(
      wordOf(
        decideAddress(policy, {
          host: 'h.example.com',
          port: 443,
          address: '10.0.0.1',
          stage: 'resolve',
        }),
      ),
      'outside-exception',
    );
  });
});
