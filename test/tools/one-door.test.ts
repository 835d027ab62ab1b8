// Every door rule must fire on what it forbids and stay silent at its door.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { findDoorFaults } from '../../tools/one-door.ts';

function faultsOf(path: string, text: string): string[] {
  return findDoorFaults(new Map([[path, text]])).map(({ message }) => message);
}

const FORBIDDEN: readonly (readonly [string, RegExp])[] = [
  [`import { request } from 'undici';`, /core\/egress/],
  [`import * as undici from 'undici';`, /core\/egress/],
  [`export { fetch } from 'undici';`, /core\/egress/],
  [`const { fetch } = await import('undici');`, /core\/egress/],
  [`import { request } from 'node:http';`, /core\/egress/],
  [`import { get } from 'https';`, /core\/egress/],
  [`import http from 'node:http';`, /core\/egress/],
  [`import * as https from 'node:https';`, /core\/egress/],
  [`import { connect } from 'node:net';`, /core\/egress/],
  [`import { Socket } from 'node:net';`, /core\/egress/],
  [`import { connect as open } from 'node:tls';`, /core\/egress/],
  [`import { lookup } from 'node:dns/promises';`, /core\/egress/],
  [`import { connect } from 'node:http2';`, /core\/egress/],
  [`const net = process.getBuiltinModule('node:net');`, /core\/egress/],
  [`import { KubeConfig } from '@kubernetes/client-node';`, /operator\/kube/],
  [`await import('@kubernetes/client-node/dist/config.js');`, /operator\/kube/],
  [`import { Pool } from 'undici/lib/dispatcher/pool.js';`, /core\/egress/],
  [`await fetch('https://example.com');`, /not even core\/egress/],
  [`const f = fetch;`, /not even core\/egress/],
  [`await globalThis.fetch('https://example.com');`, /not even core\/egress/],
  [`new WebSocket('wss://example.com');`, /not even core\/egress/],
  [`const port = process.env.PORT;`, /settings\.ts/],
  [`const port = process['env'].PORT;`, /settings\.ts/],
  [`const port = globalThis.process.env.PORT;`, /settings\.ts/],
  [`const { env } = process;`, /settings\.ts/],
  [`import { env } from 'node:process';`, /settings\.ts/],
  [`import process from 'node:process'; process.env.PORT;`, /settings\.ts/],
  [`const at = Date.now();`, /core\/clock\.ts/],
  [`const { now } = Date;`, /core\/clock\.ts/],
  [`const at = new Date();`, /core\/clock\.ts/],
  [`const at = Date();`, /core\/clock\.ts/],
  [`const at = performance.now();`, /core\/clock\.ts/],
  [`import { performance as p } from 'node:perf_hooks';`, /core\/clock\.ts/],
  [`import { performance } from 'node:perf_hooks'; performance.now();`, /core\/clock\.ts/],
  [`const at = process.hrtime.bigint();`, /core\/clock\.ts/],
];

for (const [text, door] of FORBIDDEN) {
  test(`product code is refused: ${text}`, () => {
    const [message, ...more] = faultsOf('sidecar/upstream/x.ts', text);
    assert.match(message ?? 'nothing was found', door);
    assert.deepEqual(more, []);
  });
}

const UNGUARDED = [
  `await fetch('https://example.com');`,
  `import { EnvHttpProxyAgent } from 'undici';`,
  `import { setGlobalDispatcher } from 'undici';`,
  `import { interceptors } from 'undici'; agent.compose(interceptors.dns());`,
  `import { interceptors } from 'undici'; agent.compose(interceptors.redirect());`,
];

for (const text of UNGUARDED) {
  test(`even core/egress is refused: ${text}`, () => {
    assert.match(faultsOf('core/egress/x.ts', text).join(), /past the checks/);
  });
}

const ALLOWED: readonly (readonly [string, string])[] = [
  [
    'core/x.ts',
    `import { performance } from 'node:perf_hooks'; performance.eventLoopUtilization();`,
  ],
  [
    'core/egress/x.ts',
    `import { Agent, fetch } from 'undici'; await fetch('x', { dispatcher: new Agent() });`,
  ],
  ['core/egress/x.ts', `import { connect } from 'node:tls'; import { lookup } from 'node:dns';`],
  [
    'operator/kube/x.ts',
    `import { KubeConfig } from '@kubernetes/client-node'; import { Agent } from 'undici';`,
  ],
  ['operator/settings.ts', `const port = process.env.PORT;`],
  ['core/clock.ts', `const at = [Date.now(), performance.now(), new Date()];`],
  [
    'sidecar/x.ts',
    `import { createServer } from 'node:http'; import type { Socket } from 'node:net';`,
  ],
  [
    'sidecar/x.ts',
    `import type { Dispatcher } from 'undici'; import { type Agent } from 'undici';`,
  ],
  ['sidecar/x.ts', `const at = new Date(1); type F = typeof fetch;`],
  [
    'sidecar/x.ts',
    `export function poll(fetch: () => void, door: { fetch: () => void }): void { fetch(); door.fetch(); }`,
  ],
  ['sidecar/x.ts', `const { pid, exitCode } = process; const options = { fetch: 1, env: 2 };`],
  ['test/x.ts', `await fetch('http://127.0.0.1'); process.env.A; Date.now();`],
];

for (const [path, text] of ALLOWED) {
  test(`${path} may say: ${text}`, () => {
    assert.deepEqual(faultsOf(path, text), []);
  });
}

test('a finding names the line', () => {
  const [fault] = findDoorFaults(
    new Map([['sidecar/x.ts', 'const a = 1;\n\nconst b = Date.now();\n']]),
  );
  assert.equal(fault?.line, 3);
});
