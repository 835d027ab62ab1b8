// The rules exist twice, in CEL and in TypeScript, over two URL parsers, two regular expression
// engines and two ways to count a string. Generated values near every border must get one verdict.

import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';

import fc from 'fast-check';

import { validateObject } from '#crds/validate-object.ts';
import { applyCrds } from '#test/support/apply-crds.ts';
import { startControlPlane } from '#test/support/control-plane/start-control-plane.ts';
import { editValue } from '#test/support/edit-value.ts';
import { GOOD_BINDING, GOOD_OAUTH_SERVER, GOOD_SERVER } from '#test/support/good-objects.ts';
import { ObjectClient, blamedFields } from '#test/support/object-client.ts';

const STRICT = { development: false, unknownFields: 'refuse' } as const;
const SAMPLES = { seed: 7317, numRuns: 150 } as const;

/** Texts glued from pieces: most are nearly right. */
function pieces(...groups: readonly (readonly string[])[]): fc.Arbitrary<string> {
  return fc
    .tuple(...groups.map((group) => fc.constantFrom(...group)))
    .map((parts) => parts.join(''));
}

const host = pieces(
  ['', '', '', '*.', 'a.', '.', '-', 'u@', 'x_'],
  [
    'mcp.example.com',
    'mcp.example.com',
    'MCP.example.com',
    'a.cluster.example',
    '10.0.0.1',
    '0x7f',
    '[::1]',
    'ä.example',
    'xn--a.example',
    `${'a'.repeat(63)}.example`,
    `${'a'.repeat(64)}.example`,
  ],
  ['', '', '', '.', '.1', '.0x', '.0xg', '-', '%2e', ':443'],
);
/** Mostly the good one, so that most URLs have at most one or two oddities. */
function mostly(good: fc.Arbitrary<string>, odd: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.oneof({ weight: 4, arbitrary: good }, { weight: 1, arbitrary: odd });
}

const url = fc
  .tuple(
    mostly(
      fc.constant('https://'),
      pieces(['http://', 'HTTPS://', 'https:/', '//', 'wss://', ' https://']),
    ),
    mostly(fc.constant('mcp.example.com'), host),
    mostly(
      pieces(['', ':443']),
      pieces([':8443', ':0', ':65535', ':65536', ':99999', ':', ':0443', ':a', ':-1']),
    ),
    mostly(
      pieces(['', '/', '/mcp', '//', '/.a', '/...', '/a;b=c', "/!$&'()*+,;=:@-._~"]),
      pieces([
        '/a/../b',
        '/..',
        '/.',
        '/%41',
        '/a b',
        '/ä',
        '/"',
        '/<',
        '/\\',
        '/|',
        '/\u0000',
        '/\u007f',
      ]),
    ),
    mostly(fc.constant(''), pieces(['?', '?a', '#', '#a', '\n', '\t', ' ', '\u00a0'])),
  )
  .map((parts) => parts.join(''));
const cidr = pieces(
  ['', '', ' ', '0'],
  [
    '10.0.0.0',
    '10.0.0',
    '256.0.0.1',
    '0.0.0.0',
    'fd00::',
    '::',
    '::1',
    '1::2::3',
    '::ffff:10.0.0.1',
    '::ffff:a00:1',
    '::10.0.0.1',
    'FD00::',
    'fe80::1%eth0',
    '1:2:3:4:5:6:7:8',
    '1:2:3:4:5:6:7::',
    '00001::',
  ],
  ['/', '', '//'],
  ['0', '8', '08', '32', '33', '64', '128', '129', '-1', '+1', '1e1', ''],
);
const duration = fc.oneof(
  pieces(
    ['', '-', '+', '0', '00'],
    ['1', '30', '86400', '24', '0', '1.5', '.5', '5.', '0.000001', '99999999999'],
    ['ms', 's', 'm', 'h', 'd', 'us', 'ns', 'S', '', ' s'],
    ['', '', '1ms', '0s', '59m', 's'],
  ),
  pieces(
    ['23h', '24h', '23h59m', '23h60m'],
    ['', '59s', '60s', '0.4ms', '1000ms', '0.001ms', '0.0000001ms'],
  ),
);
const odd = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  pieces(
    ['', 'a', '-', '_', '.', 'A', '0', 'ä', '😀'],
    [
      'b',
      'b-c',
      'b_c',
      'b.c',
      'b/c',
      'b*',
      'a'.repeat(22),
      'a'.repeat(62),
      'a'.repeat(126),
      '😀'.repeat(60),
    ],
    ['', 'd', '-', '.', ' ', '\n', '*'],
  ),
);
const labels = fc.dictionary(
  odd,
  pieces(['', 'a', '-', 'a.b', 'a b', 'ä', 'a'.repeat(63), 'a'.repeat(64)]),
  { maxKeys: 3 },
);
const integer = fc.oneof(
  fc.integer(),
  fc.constantFrom(0, 1, -0, 1.5, 8.0, 65_535, 65_536, 2 ** 31, 2 ** 53, 1e21),
);

type Case = readonly [what: string, good: unknown, field: string, values: fc.Arbitrary<unknown>];

const CASES: readonly Case[] = [
  ['endpoints', GOOD_SERVER, 'spec.endpoint', url],
  ['resources', GOOD_OAUTH_SERVER, 'spec.authorization.oauth.resource', url],
  ['redirect URIs', GOOD_OAUTH_SERVER, 'spec.authorization.oauth.redirectUri', url],
  ['allowed hosts', GOOD_SERVER, 'spec.egress.allowedHosts[1]', host],
  ['address ranges', GOOD_SERVER, 'spec.egress.inClusterExceptions[0].cidrs[0]', cidr],
  ['ports', GOOD_SERVER, 'spec.egress.allowedPorts[1]', integer],
  ['stream time-outs', GOOD_SERVER, 'spec.limits.streamReadTimeout', duration],
  ['concurrencies', GOOD_SERVER, 'spec.limits.maxConcurrency', integer],
  ['tool patterns', GOOD_SERVER, 'spec.tools.allow[1]', odd],
  ['scopes', GOOD_OAUTH_SERVER, 'spec.authorization.oauth.scopes[1]', odd],
  [
    'header names',
    GOOD_SERVER,
    'spec.authorization',
    odd.map((name) => ({ type: 'StaticHeader', staticHeader: { name } })),
  ],
  ['user ids', GOOD_BINDING, 'spec.user.static.id', odd],
  ['aliases', GOOD_BINDING, 'spec.servers[1].alias', odd],
  ['server names', GOOD_BINDING, 'spec.servers[0].name', odd],
  ['namespaces', GOOD_BINDING, 'spec.servers[1].namespace', odd],
  ['pod labels', GOOD_BINDING, 'spec.workload.matchLabels', labels],
];

suite('the API server and offline validation', async () => {
  const owned = new AsyncDisposableStack();
  after(() => owned.disposeAsync());
  const plane = owned.use(await startControlPlane({ auditLog: false }));
  await applyCrds(plane);
  const client = owned.use(await ObjectClient.open(plane.kubeconfigPath));

  for (const [what, good, field, values] of CASES) {
    test(`judge ${what} alike (R7)`, async () => {
      const verdicts = { ok: 0, invalid: 0 };
      for (const value of new Set(fc.sample(values, SAMPLES))) {
        const object = editValue(good, { [field]: value });
        const offline = validateObject(object, STRICT);
        const answer = await client.tryCreate(object);
        const shown = `${JSON.stringify(value)}: ${String(answer.status)} ${answer.body.message ?? ''}`;
        assert.equal(offline.kind, answer.status === 201 ? 'ok' : 'invalid', shown);
        if (offline.kind === 'invalid') {
          const blamed = blamedFields(answer);
          for (const { path } of offline.issues)
            assert.ok(blamed.includes(path), `${shown}; offline: ${path}`);
        }
        verdicts[offline.kind] += 1;
      }
      assert.ok(
        verdicts.ok > 0 && verdicts.invalid > 0,
        `one-sided samples: ${JSON.stringify(verdicts)}`,
      );
    });
  }
});
