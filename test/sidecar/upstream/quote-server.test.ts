import assert from 'node:assert/strict';
import { test } from 'node:test';

import { quoteServer, sessionOf } from '#sidecar/upstream/quote-server.ts';

const HEADERS = ['mcp-session-id', 'secret-session', 'mcp-protocol-version', '2025-11-25'];

test('a session id that the server repeats is not quoted, wherever it stands', () => {
  assert.equal(
    quoteServer('Session secret-session not found', HEADERS),
    '"Session [session] not found"',
  );
  const atTheCut = `${'x'.repeat(250)}secret-session`;
  assert.ok(!quoteServer(atTheCut, HEADERS).includes('secr'));
  const twice = quoteServer('secret-session, secret-session', HEADERS);
  assert.equal(twice, '"[session], [session]"');
});

test('a text is quoted and cut short', () => {
  assert.equal(quoteServer('a\n"b"', []), '"a\\n\\"b\\""');
  assert.equal(quoteServer('x'.repeat(10_000), []).length, 258);
});

test('the session of a request is found among its headers only by its name', () => {
  assert.equal(sessionOf(HEADERS), 'secret-session');
  assert.equal(sessionOf(['x', 'mcp-session-id']), undefined);
});
