import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { ControlAnswer } from '#sidecar/upstream/control-request.ts';
import { readDiscover } from '#sidecar/upstream/read-discover.ts';

const ASKED = '2026-07-28';
const ALLOWED = [ASKED] as const;

function result(members: Record<string, unknown>): ControlAnswer {
  return { kind: 'result', result: members, sessionId: undefined, characters: 0 };
}

function error(code: number, data?: unknown): ControlAnswer {
  return { kind: 'error', error: { code, message: 'm', data }, status: 400 };
}

const rows: readonly (readonly [what: string, answer: ControlAnswer, kind: string])[] = [
  [
    'a list with an allowed version',
    result({ supportedVersions: ['2027-01-01', ASKED], capabilities: { tools: {} } }),
    'modern',
  ],
  ['no list', result({ protocolVersion: ASKED }), 'not-modern'],
  ['a list of other things', result({ supportedVersions: [1] }), 'not-modern'],
  ['an empty list', result({ supportedVersions: [] }), 'not-modern'],
  [
    'a list of old versions alone',
    result({ supportedVersions: ['2025-11-25', '2024-11-05'] }),
    'not-modern',
  ],
  [
    'a list of newer versions alone',
    result({ supportedVersions: ['2027-01-01', '2025-11-25'] }),
    'no-version',
  ],
  [
    'unsupported version, with newer ones',
    error(-32022, { supported: ['2027-01-01'] }),
    'no-version',
  ],
  [
    'unsupported version, with old ones alone',
    error(-32022, { supported: ['2025-11-25'] }),
    'not-modern',
  ],
  [
    'unsupported version, with the very version that was asked for',
    error(-32022, { supported: [ASKED] }),
    'no-version',
  ],
  ['unsupported version without a list', error(-32022), 'not-modern'],
  ['a header mismatch', error(-32020), 'refused'],
  ['a missing capability', error(-32021), 'refused'],
  ['method not found', error(-32601), 'not-modern'],
  ['invalid request', error(-32600), 'not-modern'],
  ['invalid params', error(-32602), 'not-modern'],
  ['a server error of the old range', error(-32000), 'not-modern'],
];

for (const [what, answer, kind] of rows) {
  test(`server/discover answered with ${what} is ${kind} (R60)`, () =>
    assert.equal(readDiscover(answer, ASKED, ALLOWED).kind, kind));
}

test('what a modern server says about itself is kept (R61)', () => {
  const verdict = readDiscover(
    result({
      supportedVersions: [ASKED],
      capabilities: { tools: { x: 1 } },
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 's', more: 1 } },
    }),
    ASKED,
    ALLOWED,
  );
  assert.deepEqual(verdict, {
    kind: 'modern',
    side: {
      era: 'modern',
      protocolVersion: ASKED,
      capabilities: { tools: { x: 1 } },
      serverInfo: { name: 's', more: 1 },
    },
  });
});
