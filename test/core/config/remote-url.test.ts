import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import fc from 'fast-check';

import { checkRemoteUrl } from '#core/config/remote-url.ts';
import type { RemoteUrlFault } from '#core/config/remote-url.ts';

const production = { development: false };
const development = { development: true };

function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** Whatever passes must mean the same to the parser that opens the connection. */
function assertReadAlike(text: string): void {
  for (const rules of [production, development]) {
    const verdict = checkRemoteUrl(text, rules);
    if (verdict.kind === 'bad') continue;
    const url = new URL(text);
    assert.equal(url.hostname, verdict.host, text);
    assert.equal(portOf(url), verdict.port, text);
    assert.equal(url.protocol, verdict.protocol, text);
    assert.deepEqual([url.username, url.password, url.search, url.hash], ['', '', '', ''], text);
    const withoutDefaultPort = text
      .replace(/^(https:\/\/[^/]*):443(?=\/|$)/, '$1')
      .replace(/^(http:\/\/[^/]*):80(?=\/|$)/, '$1');
    const expected =
      url.pathname === '/' && !withoutDefaultPort.endsWith('/')
        ? `${withoutDefaultPort}/`
        : withoutDefaultPort;
    assert.equal(url.href, expected);
  }
}

const character = fc.constantFrom(
  ...'abcxyz019-._~:/@%?#[]\\&=+,;!$()*\'" \t\u00e9\u3002|^`{}<>'.split(''),
);
const label = fc.oneof(
  fc.string({
    minLength: 1,
    maxLength: 10,
    unit: fc.constantFrom(...'abcdefxn0123456789-'.split('')),
  }),
  fc.constantFrom(
    'xn--',
    'xn--a',
    'xn--mller-kva',
    'xn--0',
    '0x7f',
    '127',
    '0',
    'localhost',
    '1',
    'com',
    '08',
  ),
);
const host = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'));
const path = fc
  .array(fc.string({ maxLength: 6, unit: character }), { maxLength: 3 })
  .map((segments) => segments.map((segment) => `/${segment}`).join(''));
const port = fc.oneof(
  fc.constant(''),
  fc.integer({ min: 0, max: 70_000 }).map((number) => `:${number}`),
);
const nearUrl = fc
  .tuple(
    fc.constantFrom('https://', 'http://', 'HTTPS://', 'https:/'),
    fc.oneof(host, fc.constantFrom('[::1]', '127.0.0.1')),
    port,
    path,
  )
  .map((parts) => parts.join(''));

suite('checkRemoteUrl', () => {
  test('what passes is read alike by the WHATWG parser: generated URLs (R2)', () => {
    fc.assert(fc.property(nearUrl, assertReadAlike), { numRuns: 20_000 });
  });

  test('what passes is read alike by the WHATWG parser: any text (R2)', () => {
    fc.assert(
      fc.property(fc.string({ unit: character, maxLength: 40 }), (text) =>
        assertReadAlike(`https://${text}`),
      ),
      { numRuns: 10_000 },
    );
    fc.assert(fc.property(fc.webUrl(), assertReadAlike));
  });

  test('generated URLs pass often enough for the property to mean something', () => {
    const passed = fc
      .sample(nearUrl, 5000)
      .filter((text) => checkRemoteUrl(text, development).kind === 'ok').length;
    assert.ok(passed > 100, `${passed} passed`);
  });

  const rows: readonly (readonly [string, RemoteUrlFault | 'ok', RemoteUrlFault | 'ok'])[] = [
    ['https://mcp.example.com', 'ok', 'ok'],
    ['https://mcp.example.com/mcp', 'ok', 'ok'],
    ['https://mcp.example.com:8443/a/b~c', 'ok', 'ok'],
    ['https://xn--mller-kva.example/mcp', 'ok', 'ok'],
    ['https://MCP.example.com/', 'form', 'form'],
    ['https://mcp.example.com./', 'form', 'form'],
    ['https://user@mcp.example.com/', 'form', 'form'],
    ['https://mcp.example.com/?a=b', 'form', 'form'],
    ['https://mcp.example.com/#a', 'form', 'form'],
    ['https://mcp.example.com/%2e%2e/', 'form', 'form'],
    ['https://mcp.example.com\\@evil.test/', 'form', 'form'],
    ['https:mcp.example.com/', 'form', 'form'],
    ['ftp://mcp.example.com/', 'form', 'form'],
    ['https://mcp.example.com:0/', 'form', 'form'],
    ['https://mcp.example.com:00443/', 'form', 'form'],
    ['https://mcp.example.com:65536/', 'port', 'port'],
    ['https://mcp.example.com/a/../b', 'dot-segments', 'dot-segments'],
    ['https://127.0.0.1/mcp', 'numeric-host', 'numeric-host'],
    ['https://2130706433/mcp', 'numeric-host', 'numeric-host'],
    ['https://0x7f.1/mcp', 'numeric-host', 'numeric-host'],
    ['https://a.0x/mcp', 'numeric-host', 'numeric-host'],
    ['https://[::1]:8443/mcp', 'numeric-host', 'ok'],
    ['https://127.0.0.1:8443/mcp', 'numeric-host', 'ok'],
    ['http://mcp.example.com/mcp', 'plain-http', 'plain-http'],
    ['http://localhost:3000/mcp', 'plain-http', 'ok'],
    ['http://127.8.9.10:3000/mcp', 'plain-http', 'ok'],
    ['http://[::1]:3000/mcp', 'plain-http', 'ok'],
    ['http://localhost/mcp', 'plain-http', 'plain-http'],
    ['http://127.0.0.1.nip.io:3000/mcp', 'plain-http', 'plain-http'],
    ['http://10.0.0.1:3000/mcp', 'plain-http', 'plain-http'],
  ];
  for (const [text, inProduction, inDevelopment] of rows) {
    test(`${text} is ${inProduction} in production and ${inDevelopment} under fairlead dev (R3)`, () => {
      const word = (rules: { readonly development: boolean }): string => {
        const verdict = checkRemoteUrl(text, rules);
        return verdict.kind === 'ok' ? 'ok' : verdict.reason;
      };
      assert.deepEqual([word(production), word(development)], [inProduction, inDevelopment]);
    });
  }
});
