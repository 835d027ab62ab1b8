import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { createSecretRegistry, scrubText } from '#core/telemetry/redact.ts';
import { findLeaks, plantCanary } from '#test/support/canary.ts';

const canary = plantCanary('secret');
const secret = canary.value;
const jwt = `eyJhbGciOiJSUzI1NiJ9.${secret}.c2lnbmF0dXJl`;

suite('scrubText', () => {
  const leaking: readonly (readonly [string, string])[] = [
    ['a bearer header', `Authorization: Bearer ${secret}`],
    ['a bearer header in lower case', `authorization: bearer ${secret}`],
    ['a bearer token alone', `sent Bearer ${secret} to`],
    ['a DPoP token', `DPoP ${secret}`],
    ['a proxy header', `Proxy-Authorization: Basic ${secret}`],
    ['a cookie', `cookie: sid=${secret}`],
    ['a session header', `Mcp-Session-Id: ${secret}`],
    ['a session header in capitals', `MCP-SESSION-ID: ${secret}`],
    ['a JSON member', JSON.stringify({ authorization: `Bearer ${secret}` })],
    ['a JSON member of another case', JSON.stringify({ Authorization: `Bearer ${secret}` })],
    ['a JSON session member', JSON.stringify({ 'mcp-session-id': secret })],
    ['JSON in a JSON string', JSON.stringify({ msg: JSON.stringify({ access_token: secret }) })],
    [
      'JSON in JSON in JSON',
      JSON.stringify({ m: JSON.stringify({ m: JSON.stringify({ refresh_token: secret }) }) }),
    ],
    ['a header pair array', JSON.stringify(['authorization', `Bearer ${secret}`])],
    ['a raw pair array', JSON.stringify(['mcp-session-id', secret])],
    ['an access token member', JSON.stringify({ access_token: secret, token_type: 'Bearer' })],
    ['a form body', `grant_type=refresh_token&refresh_token=${secret}&client_id=x`],
    ['a client secret in a form', `client_secret=${secret}`],
    ['inspect output', `{ access_token: '${secret}' }`],
    ['a code in a URL', `GET http://127.0.0.1:3030/callback?code=${secret}&iss=x`],
    ['a state in a URL', `https://h/cb?x=1&state=${secret}`],
    ['a token in a fragment', `https://h/cb#access_token=${secret}`],
    ['a password in a URL', `https://user:${secret}@h.example/`],
    ['a JWT anywhere', `failed for ${jwt} at once`],
    ['a value with spaces', JSON.stringify({ client_secret: `two words ${secret}` })],
    ['a value with an escaped quote', JSON.stringify({ password: `a"b${secret}` })],
  ];
  for (const [title, text] of leaking) {
    test(`hides ${title}`, () => {
      const scrubbed = scrubText(text);
      assert.deepEqual(findLeaks(scrubbed, [canary]), [], scrubbed.replaceAll(secret, 'SECRET'));
    });
  }

  const names = [
    ...['authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'mcp-session-id'],
    ...['x-api-key', 'x-fairlead-agent', 'access_token', 'refresh_token', 'id_token'],
    ...['client_secret', 'client_assertion', 'subject_token', 'actor_token', 'assertion'],
    ...['code_verifier', 'device_code', 'password', 'api_key', 'apikey'],
  ];
  for (const name of names) {
    test(`hides ${name}, alone in a line, in any case and form`, () => {
      const forms = [
        `${name}: ${secret}`,
        `${name.toUpperCase()}: ${secret}`,
        `"${name}":"${secret}"`,
      ];
      for (const form of forms) assert.deepEqual(findLeaks(scrubText(form), [canary]), [], name);
    });
  }

  const harmless = [
    '{"level":"info","code":"EGRESS_DENIED","error_code":"SERVER_BUSY","result_class":"ok"}',
    '{"session_fingerprint":"0123456789ab","config_revision":"abc"}',
    'https://mcp.example.com/mcp',
    'the token bucket is empty',
    'a basic check',
  ];
  for (const text of harmless) {
    test(`leaves ${text} as it is`, () => assert.equal(scrubText(text), text));
  }

  test('a scrubbed JSON line is still JSON, with the other members untouched', () => {
    const lines = [
      { a: 1, authorization: `Bearer ${secret}`, b: 2 },
      { a: 1, msg: JSON.stringify({ access_token: secret, x: 'y' }), b: 2 },
      { a: 1, headers: ['authorization', secret, 'accept', '*/*'], b: 2 },
      { a: 1, msg: `Authorization: Bearer ${secret}`, b: 2 },
      { a: 1, url: `https://h/cb?code=${secret}`, b: 2 },
      { a: 1, password: `x"y\\${secret}`, b: 2 },
      { a: 1, msg: `access_token=${secret}`, b: 2 },
    ];
    for (const line of lines) {
      const scrubbed = scrubText(JSON.stringify(line));
      const parsed = JSON.parse(scrubbed) as { readonly a?: unknown; readonly b?: unknown };
      assert.deepEqual([parsed.a, parsed.b], [1, 2], scrubbed.replaceAll(secret, 'SECRET'));
      assert.deepEqual(findLeaks(scrubbed, [canary]), []);
    }
  });

  const hostile: readonly (readonly [string, (size: number) => string])[] = [
    ['quotes', (size) => '"'.repeat(size)],
    ['backslashes', (size) => '\\'.repeat(size)],
    ['header names', (size) => 'authorization:'.repeat(size / 14)],
    ['schemes', (size) => 'bearer '.repeat(size / 7)],
    ['authorities', (size) => '://a:'.repeat(size / 5)],
    ['a quoted value without end', (size) => `access_token":"${'\\"'.repeat(size / 2)}`],
    ['an escaped value without end', (size) => `access_token\\":\\"${'x\\\\"'.repeat(size / 4)}`],
  ];
  for (const [title, make] of hostile) {
    test(`four times as many ${title} cost about four times as much, not sixteen`, () => {
      const costOf = (size: number): number => {
        const text = `${make(size)}=`;
        const runs = Array.from({ length: 5 }, () => {
          const start = process.cpuUsage();
          scrubText(text);
          const { user, system } = process.cpuUsage(start);
          return user + system;
        });
        // A floor hides the noise of runs that cost next to nothing.
        return Math.min(...runs) + 1000;
      };
      costOf(5000);
      assert.ok(costOf(80_000) < costOf(20_000) * 10);
    });
  }
});

suite('the registry of live secrets', () => {
  test('hides a live value in any text, also escaped or encoded', () => {
    const registry = createSecretRegistry();
    const value = `odd "value" ${secret}/+`;
    registry.add(value);
    for (const text of [value, JSON.stringify({ x: value }), encodeURIComponent(value)]) {
      assert.deepEqual(findLeaks(registry.scrub(`before ${text} after`), [canary]), []);
    }
  });

  test('a value that was added twice stays hidden until both are gone', () => {
    const registry = createSecretRegistry();
    const first = registry.add(secret);
    const second = registry.add(secret);
    first();
    first();
    assert.equal(registry.scrub(secret), '[redacted]');
    second();
    assert.equal(registry.scrub(secret), secret);
  });

  test('values too short to be secrets do not blot out words', () => {
    const registry = createSecretRegistry();
    registry.add('info');
    registry.add('');
    assert.equal(registry.scrub('{"level":"info"}'), '{"level":"info"}');
  });
});
