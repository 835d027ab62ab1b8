// Real files, with everything that can become of one.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { judgeFile } from './file-result.ts';
import type { FileResult } from './file-result.ts';
import { runFile } from './run-file.ts';

const HEAD = `import assert from 'node:assert/strict'; import { spawn } from 'node:child_process'; import { suite, test } from 'node:test';\n`;
const FOREVER = 'setInterval(() => {}, 1000)';

let directory = '';

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fairlead-run-file-'));
});

after(() => rm(directory, { recursive: true, force: true }));

let counter = 0;

async function judge(text: string, timeoutMs = 60_000): Promise<FileResult> {
  const path = `file-${(counter += 1)}.test.mjs`;
  await writeFile(join(directory, path), HEAD + text);
  const options = { directory, timeoutMs, nodeFlags: [], signal: new AbortController().signal };
  return judgeFile(await runFile(path, options));
}

test('a good file is one line, without what it printed', async () => {
  const { totals, text } = await judge(
    `console.log('quiet'); test('a', () => {}); suite('s', () => { test('b', async () => {}); });`,
  );
  assert.deepEqual(totals, { passed: 2, failed: 0, skipped: 0 });
  assert.match(text, /^ok {3}file-\d+\.test\.mjs {2}2 passed, 0 failed {2}[\d.]+ s\n$/);
});

test('a failure is shown with its reason, its place and what its file printed', async () => {
  const { totals, text } = await judge(
    `console.log('seen'); test('is wrong', () => assert.equal(1, 2));`,
  );
  assert.deepEqual(totals, { passed: 0, failed: 1, skipped: 0 });
  assert.match(
    text,
    /✖ is wrong \(file-\d+\.test\.mjs:2\)\n\s+AssertionError[^]*1 !== 2[^]*it printed:\n\s+seen/,
  );
});

test('a failure in a subtest fails its parent, and only the subtest has something to say', async () => {
  const { totals, text } = await judge(
    `test('outer', async (t) => { await t.test('inner', () => { throw new Error('deep'); }); });`,
  );
  assert.deepEqual(totals, { passed: 0, failed: 2, skipped: 0 });
  assert.match(text, /✖ inner[^]*deep/);
  assert.doesNotMatch(text, /✖ outer/);
});

test('a failed hook is shown once, though it fails every test', async () => {
  const { totals, text } = await judge(
    `import { before } from 'node:test'; before(() => { throw new Error('no root'); }); test('a', () => {}); test('b', () => {});`,
  );
  assert.equal(totals.failed, 2);
  assert.equal(text.split('Error: no root').length, 2, text);
});

test('a skipped test is shown with its reason', async () => {
  const { totals, text } = await judge(`test('needs root', { skip: 'not root' }, () => {});`);
  assert.deepEqual(totals, { passed: 0, failed: 0, skipped: 1 });
  assert.match(text, /skipped: needs root: not root/);
});

const FAULTS: readonly (readonly [string, string, RegExp])[] = [
  ['cannot be loaded', `throw new Error('while loading');`, /ended with 1[^]*while loading/],
  [
    'ends in the middle',
    `test('a', () => process.exit(0));`,
    /ended with 0 before its tests had ended/,
  ],
  [
    'ends badly after its tests',
    `test('a', () => {}); process.on('exit', () => { process.exitCode = 3; });`,
    /ended with 3/,
  ],
  ['holds no test', `console.log('nothing');`, /holds no test|before its tests/],
];

for (const [what, text, reason] of FAULTS) {
  test(`a file that ${what} has failed`, async () => {
    const result = await judge(text);
    assert.equal(result.totals.failed, 1, result.text);
    assert.match(result.text, reason);
  });
}

test('a file that hangs is ended, and the test that hangs is named', async () => {
  const { totals, text } = await judge(
    `test('a', () => {}); test('never ends', () => new Promise(() => ${FOREVER}));`,
    1500,
  );
  assert.equal(totals.failed, 1);
  assert.match(text, /did not end within 1\.5 s; in: never ends/);
});

test('a file that leaks a handle is ended and has failed, though its tests have passed', async () => {
  const { totals, text } = await judge(`test('a', () => void ${FOREVER});`, 1500);
  assert.deepEqual(totals, { passed: 1, failed: 1, skipped: 0 });
  assert.match(text, /all tests had ended: a handle leaks/);
});

test('what a hanging file started ends with it', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const connected = once(server, 'connection') as Promise<[Socket]>;
  const grandchild = `require('node:net').connect(${port}, '127.0.0.1')`;
  const start = `spawn(process.execPath, ['-e', ${JSON.stringify(grandchild)}], { stdio: 'ignore' });`;
  const judged = judge(
    `test('a', () => { ${start} return new Promise(() => ${FOREVER}); });`,
    3000,
  );
  const [socket] = await connected;
  const closed = once(
    socket.on('error', () => undefined),
    'close',
  );
  await judged;
  await closed;
  server.close();
});
