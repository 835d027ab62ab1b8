// URLs in every odd spelling. Whatever two readers (the WHATWG parser that connects, a strict
// reader of RFC 3986, Node's old url.parse) take for different hosts is refused, or what is
// connected to is what was judged.

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
// The old parser is here to be disagreed with.
import { parse as parseLegacy } from 'node:url';

import fc from 'fast-check';

import { systemClock } from '#core/clock.ts';
import { checkRemoteUrl } from '#core/config/remote-url.ts';
import { bareHost, decideUrl, portOf } from '#core/egress/decide-egress.ts';
import { decideRedirect } from '#core/egress/decide-redirect.ts';
import type { EgressPolicy } from '#core/egress/egress-policy.ts';
import { createGuardedClient } from '#core/egress/guarded-client.ts';
import { isHostListed } from '#core/egress/host-rule.ts';
import { renderRequestHead } from '#core/egress/request-head.ts';
import { readStrictUri } from '#test/support/strict-uri.ts';

process.noDeprecation = true;

const RUNS = 3_000;
/** Of one in a hundred, so that a property never holds of nothing. */
const SEEN_AT_LEAST = 3;
const strict: EgressPolicy = {
  allowedHosts: ['mcp.example.com', '*.tenant.example.net'],
  allowedPorts: [443],
  inClusterExceptions: [],
  development: false,
};

const word = fc.constantFrom(
  'mcp.example.com',
  'x.tenant.example.net',
  'evil.org',
  '169.254.169.254',
  '2852039166',
  '0xa9fea9fe',
  '[::1]',
  '[::ffff:a9fe:a9fe]',
  'localhost',
  'MCP.EXAMPLE.COM',
  'mcp。example。com',
  'mcp%2eexample%2ecom',
  'mcp.ex\u0430mple.com',
  'xn--',
  '\uff11\uff12\uff17.0.0.1',
);
const mark = fc.constantFrom(
  ...['/', '//', '\\', '\\\\', '@', ':', '#', '?', '.', '..', '%', '%00', '%2f', '%40', '%23'],
  ...[' ', '\t', '\n', '\r', '\0', '\u00ad', '\u200b', '\uff0f', '\uff20', '\uff03', '[', ']', '|'],
  ...[':443', ':8443', ':00443', ':0', ':65536', ':-1', 'user:pw@', '&', ';', '=', '*', '"', '<'],
);
const scheme = fc.constantFrom(
  ...['https://', 'https:', 'https:/', 'https:///', 'https:\\\\', 'HTTPS://', ' https://'],
  ...['http://', 'ht\ttps://', 'ftp://', 'wss://', 'file://', 'javascript:', 'data:', '//', ''],
);
const pieces = fc.array(
  fc.oneof({ weight: 3, arbitrary: word }, mark, fc.string({ maxLength: 4 })),
  {
    minLength: 1,
    maxLength: 6,
  },
);
const oddUrl = fc.tuple(scheme, pieces).map(([start, rest]) => `${start}${rest.join('')}`);
const anyText = fc.oneof(oddUrl, fc.webUrl(), fc.string({ unit: 'binary', maxLength: 40 }));

/** RFC 3986 section 6.2.2: case, and encoded characters that need no encoding. */
function normalHost(host: string | undefined): string | undefined {
  return host
    ?.replaceAll(/%([2-7][0-9a-f])/gi, (encoded, digits: string) => {
      const character = String.fromCharCode(Number.parseInt(digits, 16));
      return /[A-Za-z0-9._~-]/.test(character) ? character : encoded;
    })
    .toLowerCase();
}

suite('odd spellings of URLs', () => {
  test('what is allowed has a listed host, port and scheme for whoever reads the URL that is used (R11)', () => {
    let allowed = 0;
    fc.assert(
      fc.property(anyText, (text) => {
        const url = URL.parse(text);
        if (url === null || decideUrl(strict, url).kind === 'deny') return;
        allowed += 1;
        assert.ok(isHostListed(strict.allowedHosts, bareHost(url)), text);
        assert.equal(portOf(url), 443);
        // The serialized URL goes into logs, keys and comparisons.
        const again = URL.parse(url.href);
        assert.equal(again?.host, url.host);
        assert.equal(parseLegacy(url.href).hostname, url.hostname, url.href);
        const read = readStrictUri(url.origin);
        assert.deepEqual(read && [read.scheme, read.host, read.userInfo, read.port], [
          'https',
          url.hostname,
          undefined,
          undefined,
        ]);
      }),
      { numRuns: RUNS },
    );
    assert.ok(allowed >= SEEN_AT_LEAST, `${allowed} allowed`);
  });

  test('the request that is written names the host that was judged, on one line each (R11)', () => {
    let written = 0;
    fc.assert(
      fc.property(anyText, (text) => {
        const url = URL.parse(text);
        if (url === null || decideUrl(strict, url).kind === 'deny') return;
        written += 1;
        const path = `${url.pathname}${url.search}`;
        const head = renderRequestHead({ method: 'GET', path }, `host: ${url.host}\r\n`, 0);
        assert.deepEqual(head.split('\r\n'), [
          `GET ${path} HTTP/1.1`,
          `host: ${url.hostname}`,
          '',
          '',
        ]);
        // RFC 9112 section 3.2.1: a target in origin form, which no reader splits in two.
        assert.match(path, /^\/[\x21-\x7e]*$/);
        assert.equal(new URL(path.replace(/^\/+/, '/'), url.origin).host, url.host);
      }),
      { numRuns: RUNS },
    );
    assert.ok(written >= SEEN_AT_LEAST, `${written} written`);
  });

  test('the name that is looked up is the name that was judged (R13)', async () => {
    let lookups = 0;
    await fc.assert(
      fc.asyncProperty(oddUrl, async (text) => {
        const url = URL.parse(text);
        if (url === null) return;
        const asked: string[] = [];
        await using client = createGuardedClient({
          policy: strict,
          clock: systemClock,
          connectTimeoutMs: 1000,
          openSocket: () => assert.fail('a socket was opened'),
          resolve: (host, _options, callback) => {
            asked.push(host);
            callback(null, [{ address: '10.0.0.1', family: 4 }]);
          },
        });
        const outcome = await client.exchange({
          kind: 'discovery',
          url,
          method: 'GET',
          headers: {},
        });
        assert.equal(outcome.kind, 'denied', text);
        const isAllowed = decideUrl(strict, url).kind === 'allow';
        lookups += asked.length;
        assert.deepEqual(asked, isAllowed ? [`${url.hostname}.`] : [], text);
      }),
      { numRuns: RUNS / 3 },
    );
    assert.ok(lookups >= SEEN_AT_LEAST, `${lookups} lookups`);
  });

  test('a configured URL that is accepted means one thing to all three readers (R2)', () => {
    let accepted = 0;
    const label = fc.stringMatching(/^[a-z0-9-]{1,6}$/);
    const plain = fc
      .tuple(
        fc.constantFrom('https://', 'http://', 'https:/', 'HTTPS://'),
        fc.array(fc.oneof(label, mark), { minLength: 1, maxLength: 4 }),
        fc.constantFrom('', ':443', ':8443', ':0443', ':99999', '.', ':'),
        fc.array(fc.oneof(fc.constant('/'), label, mark), { maxLength: 5 }),
      )
      .map(([start, labels, port, path]) => `${start}${labels.join('.')}${port}/${path.join('')}`);
    fc.assert(
      fc.property(fc.oneof(plain, anyText), (text) => {
        const verdict = checkRemoteUrl(text, { development: false });
        if (verdict.kind === 'bad') return;
        accepted += 1;
        const [url, legacy, read] = [new URL(text), parseLegacy(text), readStrictUri(text)];
        assert.ok(read !== undefined, text);
        const { host, port } = verdict;
        assert.deepEqual(
          [url.hostname, legacy.hostname, read.host, portOf(url), url.pathname, legacy.auth],
          [host, host, host, port, read.path === '' ? '/' : read.path, null],
          text,
        );
        assert.equal(Number(read.port ?? 443), port, text);
      }),
      { numRuns: RUNS },
    );
    assert.ok(accepted >= SEEN_AT_LEAST, `${accepted} accepted`);
  });

  test('a redirect that is followed leads where a strict reader reads it (R14)', () => {
    const from = new URL('https://mcp.example.com/a/b');
    let followed = 0;
    fc.assert(
      fc.property(
        fc.oneof(
          anyText,
          pieces.map((parts) => parts.join('')),
        ),
        (location) => {
          const verdict = decideRedirect({
            policy: strict,
            kind: 'discovery',
            method: 'GET',
            isPersonal: false,
            url: from,
            status: 302,
            locations: [location],
            visited: [from],
          });
          if (verdict.kind !== 'follow') return;
          followed += 1;
          // RFC 3986 section 5.2.2: a reference with an authority has that one, any other the base's.
          const authority = /^(?:https?:)?\/\/([^/?#]*)/i.exec(location)?.[1];
          const host =
            authority === undefined ? from.hostname : readStrictUri(`https://${authority}`)?.host;
          assert.equal(verdict.url.hostname, normalHost(host), location);
          assert.equal(decideUrl(strict, verdict.url).kind, 'allow');
        },
      ),
      { numRuns: RUNS },
    );
    assert.ok(followed >= SEEN_AT_LEAST, `${followed} followed`);
  });
});
