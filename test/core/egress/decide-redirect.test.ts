import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { decideRedirect } from '#core/egress/decide-redirect.ts';
import type { RedirectQuestion, RequestKind } from '#core/egress/decide-redirect.ts';
import type { EgressPolicy } from '#core/egress/egress-policy.ts';

const START = 'https://mcp.example.com/a/b';
const policy: EgressPolicy = {
  allowedHosts: ['mcp.example.com', 'auth.example.com', '*.tenant.example.net'],
  allowedPorts: [443],
  inClusterExceptions: [],
  development: false,
};

function decide(location: string, change: Partial<RedirectQuestion> = {}): string {
  const url = change.url ?? new URL(START);
  const verdict = decideRedirect({
    policy,
    kind: 'discovery',
    method: 'GET',
    isPersonal: false,
    url,
    status: 302,
    locations: [location],
    visited: [url],
    ...change,
  });
  return verdict.kind === 'follow'
    ? verdict.url.href
    : verdict.kind === 'deny'
      ? verdict.reason
      : 'final';
}

suite('a redirect of discovery', () => {
  const rows: readonly [string, string][] = [
    ['/c', 'https://mcp.example.com/c'],
    ['c', 'https://mcp.example.com/a/c'],
    ['?x=1', 'https://mcp.example.com/a/b?x=1'],
    ['HTTPS://MCP.example.com/c', 'https://mcp.example.com/c'],
    ['https://auth.example.com/c', 'https://auth.example.com/c'],
    ['https://x.tenant.example.net/c', 'https://x.tenant.example.net/c'],
    ['//auth.example.com/c', 'https://auth.example.com/c'],
    ['/c#part', 'https://mcp.example.com/c#part'],
    ['https://mcp.example.com:443/c', 'https://mcp.example.com/c'],
    ['http://mcp.example.com/c', 'redirect-downgrade'],
    ['HTTP://mcp.example.com/c', 'redirect-downgrade'],
    ['https://evil.org/', 'host-not-listed'],
    ['//evil.org/', 'host-not-listed'],
    ['https://tenant.example.net/', 'host-not-listed'],
    ['https://mcp.example.com.evil.org/', 'host-not-listed'],
    ['https://mcp.example.com@evil.org/', 'user-information'],
    ['https://user:pw@mcp.example.com/', 'user-information'],
    ['https://mcp.example.com:8443/', 'port-not-listed'],
    ['https://mcp.example.com./', 'trailing-dot'],
    ['https://169.254.169.254/', 'ip-literal'],
    ['https://2852039166/', 'ip-literal'],
    ['https://0xa9fea9fe/', 'ip-literal'],
    ['https://[::ffff:a9fe:a9fe]/', 'ip-literal'],
    ['https://localhost/', 'not-loopback'],
    ['#part', 'redirect-loop'],
    [START, 'redirect-loop'],
    ['', 'redirect-location'],
    [' ', 'redirect-location'],
    ['/\\evil.org', 'redirect-location'],
    ['\\\\evil.org\\x', 'redirect-location'],
    ['https:/evil.org/', 'redirect-location'],
    ['https:evil.org', 'redirect-location'],
    ['https:///evil.org', 'redirect-location'],
    ['///mcp.example.com/', 'redirect-location'],
    ['https://', 'redirect-location'],
    ['http://[', 'redirect-location'],
    ['ht\ttps://evil.org/', 'redirect-location'],
    ['/a b', 'redirect-location'],
    ['https://mcp.example。com/', 'redirect-location'],
    ['ftp://mcp.example.com/', 'redirect-location'],
    ['file:///etc/passwd', 'redirect-location'],
    ['data:application/json,{}', 'redirect-location'],
    ['blob:https://mcp.example.com/x', 'redirect-location'],
    ['javascript:alert(1)', 'redirect-location'],
    ['wss://mcp.example.com/', 'redirect-location'],
    [`/${'x'.repeat(5_000)}`, 'redirect-location'],
  ];
  for (const [location, expected] of rows)
    test(`to ${JSON.stringify(location.slice(0, 60))} is ${expected} (R14)`, () => {
      assert.equal(decide(location), expected);
    });

  for (const status of [301, 302, 303, 307, 308])
    test(`of status ${status} is followed`, () => {
      assert.equal(decide('/c', { status }), 'https://mcp.example.com/c');
    });
  for (const status of [200, 201, 300, 304, 305, 306, 309, 401, 500])
    test(`does not exist in status ${status}`, () => {
      assert.equal(decide('https://169.254.169.254/', { status }), 'final');
    });

  test('without a Location is the answer; with two it is refused', () => {
    assert.equal(decide('', { locations: [] }), 'final');
    assert.equal(decide('', { locations: ['/c', '/d'] }), 'redirect-location');
    assert.equal(decide('', { locations: ['/c', '/c'] }), 'redirect-location');
  });

  test('back to any URL of the way is a loop', () => {
    const visited = [new URL(START), new URL('/c', START)];
    const url = new URL('/c', START);
    assert.equal(decide(`${START}#x`, { url, visited }), 'redirect-loop');
  });

  test('may be the third, and not the fourth, or as the policy says', () => {
    const way = (hops: number) =>
      Array.from({ length: hops + 1 }, (_, hop) => new URL(`/${hop}`, START));
    assert.equal(decide('/x', { visited: way(2) }), 'https://mcp.example.com/x');
    assert.equal(decide('/x', { visited: way(3) }), 'redirect-limit');
    const wide = { ...policy, maxRedirects: 5 };
    assert.equal(decide('/x', { policy: wide, visited: way(4) }), 'https://mcp.example.com/x');
    assert.equal(decide('/x', { policy: wide, visited: way(5) }), 'redirect-limit');
    assert.equal(decide('/x', { policy: { ...policy, maxRedirects: 0 } }), 'redirect-limit');
  });

  test('in development leads from loopback to loopback, and never there from outside', () => {
    const development = {
      ...policy,
      development: true,
      allowedHosts: ['localhost', '127.0.0.1', 'mcp.example.com'],
    };
    const local = new URL('http://localhost:3000/');
    const to = (location: string, url: URL): string =>
      decide(location, { policy: development, url, visited: [url] });
    assert.equal(to('http://127.0.0.1:3001/x', local), 'http://127.0.0.1:3001/x');
    assert.equal(to('http://10.0.0.5/', local), 'plain-http');
    assert.equal(to('https://localhost:3000/', new URL(START)), 'not-loopback');
  });
});

suite('a redirect of a call', () => {
  const call = { kind: 'mcp', method: 'POST', isPersonal: true } as const;
  for (const status of [307, 308])
    test(`of status ${status} is followed within the origin only`, () => {
      assert.equal(decide('/a/b/', { ...call, status }), 'https://mcp.example.com/a/b/');
      assert.equal(
        decide('https://auth.example.com/', { ...call, status }),
        'redirect-other-origin',
      );
      assert.equal(
        decide('http://mcp.example.com/a/b/', { ...call, status }),
        'redirect-downgrade',
      );
      assert.equal(decide(START, { ...call, status }), 'redirect-loop');
    });
  for (const status of [301, 302, 303])
    test(`of status ${status} would change the request`, () => {
      assert.equal(decide('/a/b/', { ...call, status }), 'redirect-method');
    });
});

test('a request with a token, a session or a body stays within its origin (R14)', () => {
  const personal = { isPersonal: true } as const;
  assert.equal(decide('/c', personal), 'https://mcp.example.com/c');
  assert.equal(decide('https://auth.example.com/c', personal), 'redirect-other-origin');
});

test('a GET of a stream keeps its method within the origin (R14)', () => {
  const stream = { kind: 'mcp', method: 'GET', isPersonal: true } as const;
  assert.equal(decide('/c', stream), 'https://mcp.example.com/c');
  assert.equal(decide('https://auth.example.com/c', stream), 'redirect-other-origin');
  assert.equal(decide('/c', { ...stream, method: 'DELETE' }), 'redirect-method');
});

for (const kind of ['token', 'registration', 'revocation'] satisfies RequestKind[])
  test(`no redirect of a ${kind} request is followed, not even within the origin`, () => {
    for (const status of [301, 302, 303, 307, 308])
      assert.equal(decide('/c', { kind, status }), 'redirect-not-followed');
  });

test('keys are fetched like metadata', () => {
  assert.equal(
    decide('https://auth.example.com/c', { kind: 'jwks' }),
    'https://auth.example.com/c',
  );
});
