// Rules as somebody writes them, row by row.

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { hostRuleFault, hostRuleMatches } from '#core/egress/host-rule.ts';
import type { HostRuleFault, HostRulePlace } from '#core/egress/host-rule.ts';

const PRODUCTION = { development: false, exceptionHosts: [] } as const;

function fault(rule: string, place: HostRulePlace = 'allowed-host'): HostRuleFault | undefined {
  return hostRuleFault(rule, { ...PRODUCTION, place });
}

suite('host rules', () => {
  const good = [
    'mcp.example.com',
    '*.example.com',
    '*.tenant.example.net',
    'xn--mller-kva.example',
    'a_b.example.com',
    '_mcp.example.com',
    'files.tools',
    'mcp-files.tools.svc.cluster.local',
    `${'a'.repeat(63)}.example.com`,
    'com.example',
    '1.example.com',
  ];
  for (const rule of good) {
    test(`${rule.slice(0, 70)} is in order (R12)`, () => assert.equal(fault(rule), undefined));
  }

  const bad: readonly (readonly [string, HostRuleFault])[] = [
    ['', 'form'],
    ['*', 'form'],
    ['*.', 'form'],
    ['.example.com', 'form'],
    ['mcp.example.com.', 'form'],
    ['mcp..example.com', 'form'],
    ['-mcp.example.com', 'form'],
    ['mcp-.example.com', 'form'],
    ['*mcp.example.com', 'form'],
    ['mcp*.example.com', 'form'],
    ['mcp.*.com', 'form'],
    ['*.*.example.com', 'form'],
    ['MCP.example.com', 'form'],
    ['müller.example', 'form'],
    ['mcp.example.com:443', 'form'],
    ['mcp.example.com/x', 'form'],
    ['https://mcp.example.com', 'form'],
    ['user@mcp.example.com', 'form'],
    ['mcp.example.com a.example.com', 'form'],
    ['mcp.example.com\nhttp_access allow all', 'form'],
    ['mcp.example.com\n', 'form'],
    ['"mcp.example.com"', 'form'],
    ['$(id).example.com', 'form'],
    ['mcp.example.com#', 'form'],
    ['mcp.example.com\0', 'form'],
    [`${'a'.repeat(64)}.example.com`, 'form'],
    [`${'a.'.repeat(126)}com`, 'form'],
    ['127.0.0.1', 'numeric-host'],
    ['2130706433', 'numeric-host'],
    ['0x7f', 'numeric-host'],
    ['mcp.0x7f', 'numeric-host'],
    ['*.1', 'numeric-host'],
    ['[::1]', 'numeric-host'],
    ['localhost', 'single-label'],
    ['kubernetes', 'single-label'],
    ['x', 'single-label'],
    ['*.com', 'wide-wildcard'],
    ['*.local', 'wide-wildcard'],
    ['*.svc', 'wide-wildcard'],
    ['*.internal', 'wide-wildcard'],
    ['*.cluster.local', 'wide-wildcard'],
    ['*.svc.cluster.local', 'wide-wildcard'],
    ['*.tools.svc.cluster.local', 'internal-wildcard'],
    ['*.tools.svc', 'internal-wildcard'],
    ['*.google.internal', 'internal-wildcard'],
    ['*.x.home.arpa', 'internal-wildcard'],
    ['metadata.google.internal', 'reserved-name'],
    ['metadata.goog', 'reserved-name'],
    ['kubernetes.default', 'reserved-name'],
    ['kubernetes.default.svc.cluster.local', 'reserved-name'],
  ];
  for (const [rule, expected] of bad) {
    test(`${JSON.stringify(rule).slice(0, 70)} is refused: ${expected} (R12)`, () =>
      assert.equal(fault(rule), expected));
  }

  test('an exception may name a single label or all Services of one namespace, but not all (R12)', () => {
    assert.equal(fault('files', 'exception'), undefined);
    assert.equal(fault('*.tools.svc.cluster.local', 'exception'), undefined);
    assert.equal(fault('*.svc.cluster.local', 'exception'), 'wide-wildcard');
    assert.equal(fault('kubernetes.default.svc', 'exception'), 'reserved-name');
  });

  test('a single label is listed where an exception names it (R12)', () => {
    const context = { development: false, place: 'allowed-host' } as const;
    const files = { ...context, exceptionHosts: ['files'] };
    assert.equal(hostRuleFault('files', files), undefined);
    assert.equal(hostRuleFault('other', files), 'single-label');
  });

  test('development lists loopback, and nothing else that production refuses (R3)', () => {
    const context = { development: true, place: 'allowed-host', exceptionHosts: [] } as const;
    for (const rule of ['localhost', '127.0.0.1', '127.8.9.10', '[::1]'])
      assert.equal(hostRuleFault(rule, context), undefined, rule);
    assert.equal(hostRuleFault('10.0.0.1', context), 'numeric-host');
    assert.equal(hostRuleFault('files', context), 'single-label');
    assert.equal(hostRuleFault('*.com', context), 'wide-wildcard');
  });
});

test('a wildcard names every depth below its suffix, and never the suffix itself (R12)', () => {
  assert.ok(hostRuleMatches('*.example.com', 'a.example.com'));
  assert.ok(hostRuleMatches('*.example.com', 'a.b.example.com'));
  for (const host of ['example.com', 'aexample.com', '.example.com', 'a.example.com.evil.org'])
    assert.ok(!hostRuleMatches('*.example.com', host), host);
});
