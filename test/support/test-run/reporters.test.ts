// Both reporters over real runs of node --test, with everything that can become of a test file.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { readTotals } from './run-plan.ts';
import type { Totals } from './run-plan.ts';

const HEAD = `import assert from 'node:assert/strict'; import { test } from 'node:test';\n`;

const FILES: Readonly<Record<string, string>> = {
  'passes.test.mjs': `test('works', () => {}); test('works too', async () => {}); console.log('not shown');`,
  'fails.test.mjs': `console.log('seen by the reader'); test('is wrong', () => assert.equal(1, 2));`,
  'nested.test.mjs': `test('outer', async (t) => { await t.test('inner is wrong', () => { throw new Error('deep'); }); });`,
  'skips.test.mjs': `test('needs root', { skip: 'not root' }, () => {});`,
  'crashes.test.mjs': `throw new Error('while loading');`,
  'hangs.test.mjs': `test('never ends', () => new Promise(() => setInterval(() => {}, 1000)));`,
};

let directory = '';
let shown = '';
let totals: Totals = { passed: 0, failed: 0, skipped: 0 };

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fairlead-reporters-'));
  for (const [name, text] of Object.entries(FILES))
    await writeFile(join(directory, name), HEAD + text);
  const summary = join(directory, 'summary.json');
  const reporter = (name: string): string => new URL(`./${name}.ts`, import.meta.url).href;
  const args = [
    '--test',
    '--test-timeout=3000',
    '--test-force-exit',
    `--test-reporter=${reporter('progress-reporter')}`,
    '--test-reporter-destination=stdout',
    `--test-reporter=${reporter('summary-reporter')}`,
    `--test-reporter-destination=${summary}`,
    ...Object.keys(FILES).map((name) => join(directory, name)),
  ];
  const exitCode = await new Promise<number | null>((resolve) => {
    // Of an outer run the inner one must know nothing, or it reports to it.
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
    const child = execFile(process.execPath, args, { cwd: directory, env }, (_error, stdout) => {
      shown = stdout;
      resolve(child.exitCode);
    });
  });
  totals = readTotals(await readFile(summary, 'utf8'), exitCode);
});

after(() => rm(directory, { recursive: true, force: true }));

test('every test counts once, files that crash or hang among the failed', () => {
  assert.deepEqual(totals, { passed: 2, failed: 5, skipped: 1 }, shown);
});

test('each file that ended has one line', () => {
  assert.match(shown, /^ok {3}passes\.test\.mjs {2}2 passed, 0 failed {2}\d/m);
  assert.match(shown, /^FAIL fails\.test\.mjs {2}0 passed, 1 failed/m);
  assert.doesNotMatch(shown, /not shown/);
});

test('a failure is shown with its reason, its place and what its file printed', () => {
  assert.match(shown, /FAIL is wrong\n\s+fails\.test\.mjs:2\n\s+AssertionError[^]*1 !== 2/);
  assert.match(shown, /seen by the reader/);
  assert.match(shown, /FAIL inner is wrong[^]*deep/);
  assert.doesNotMatch(shown, /FAIL outer/);
});

test('a file that cannot be loaded is shown by name', () => {
  assert.match(shown, /FAIL \S*crashes\.test\.mjs/);
});

test('a skipped test is shown with its reason', () => {
  assert.match(shown, /skip needs root: not root/);
});
