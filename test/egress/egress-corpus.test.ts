// The runner itself: what it says of files that are right, wrong, unreadable or unknown. A runner
// that cannot fail proves nothing, so every expectation is turned round once.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { parseEgressCorpus } from './corpus-file.ts';
import type { CaseResult } from './run-case.ts';
import { runCorpus } from './run-corpus.ts';

const CORPUS = fileURLToPath(new URL('../corpus/egress.json', import.meta.url));
const PROGRAM = fileURLToPath(new URL('egress-corpus.ts', import.meta.url));

type Case = Readonly<Record<string, unknown>>;
interface CorpusFile {
  readonly policies: Readonly<Record<string, unknown>>;
  readonly cases: readonly Case[];
}

const file = JSON.parse(readFileSync(CORPUS, 'utf8')) as CorpusFile;
const directory = mkdtempSync(join(tmpdir(), 'fairlead-corpus-'));
after(() => rmSync(directory, { recursive: true }));

function run(cases: readonly Case[]): Promise<readonly CaseResult[]> {
  return runCorpus(parseEgressCorpus(JSON.stringify({ ...file, cases })));
}

/** Each changed case must fail, and say why. */
async function assertAllFail(cases: readonly Case[]): Promise<void> {
  assert.ok(cases.length > 0, 'no case to change');
  const passed = (await run(cases)).filter(({ differences }) => differences.length === 0);
  assert.deepEqual(
    passed.map(({ id }) => id),
    [],
  );
}

function having(member: string): readonly Case[] {
  return file.cases.filter((corpusCase) => Object.hasOwn(corpusCase, member));
}

suite('a case that expects what is not so fails', () => {
  test('every verdict turned round (R11)', () =>
    assertAllFail(
      file.cases.map((one) => ({ ...one, expect: one['expect'] === 'allow' ? 'deny' : 'allow' })),
    ));

  test('every stage another one (R11)', () =>
    assertAllFail(having('stage').map((one) => ({ ...one, stage: 'elsewhere' }))));

  test('one request more, or one less (R11)', () =>
    assertAllFail(
      having('mustSend').flatMap((one) => {
        const sent = one['mustSend'] as string[];
        const more = { ...one, mustSend: [...sent, 'GET https://mcp.example.com/other'] };
        return sent.length === 0 ? [more] : [more, { ...one, mustSend: sent.slice(1) }];
      }),
    ));

  test('a hop, an issuer or an address that is not the one (R13)', () =>
    assertAllFail([
      ...having('deniedAtHop').map((one) => ({ ...one, deniedAtHop: 9 })),
      ...having('selectedIssuer').map((one) => ({ ...one, selectedIssuer: 'https://evil.org' })),
      ...having('connectTo').map((one) => ({ ...one, connectTo: ['93.184.215.77'] })),
      ...having('connectTo').map((one) => ({ ...one, mustNotConnect: one['connectTo'] })),
      ...having('connectTo').map((one) => ({ ...one, maxLookups: 0, phase: 'first' })),
    ]));

  test('a last request with a header more, or another method, URL or body (R14)', () =>
    assertAllFail(
      having('lastRequest').flatMap((one) => {
        const last = one['lastRequest'] as Record<string, unknown>;
        return [
          { ...last, headers: [...(last['headers'] as string[]), 'x-more'] },
          { ...last, method: 'PUT' },
          { ...last, url: 'https://mcp.example.com/elsewhere' },
          { ...last, hasBody: last['hasBody'] !== true },
        ].map((lastRequest) => ({ ...one, lastRequest }));
      }),
    ));

  test('a request that must not be sent, and was (R14)', () =>
    assertAllFail(
      file.cases
        .filter(({ kind, expect }) => kind === 'url' && expect === 'allow')
        .map((one) => ({ ...one, mustNotSend: [one['input']] })),
    ));
});

suite('what cannot be read is a failure of its own', () => {
  const good = file.cases.find(({ kind }) => kind === 'url') ?? {};
  const rows: readonly (readonly [string, Case])[] = [
    ['an unknown kind', { ...good, kind: 'tunnel' }],
    ['a kind that is a member of every object', { ...good, kind: 'constructor' }],
    ['an unknown policy', { ...good, policy: 'absent' }],
    ['no policy', { ...good, policy: null }],
    ['an input of another form', { ...good, input: { url: 'https://mcp.example.com/' } }],
    ['no expectation', { ...good, expect: undefined }],
    ['no kind', { ...good, kind: undefined }],
    ['something that is no object', 'x' as unknown as Case],
  ];
  for (const [what, one] of rows) {
    test(`${what} (R11)`, async () => {
      const [result] = await run([one]);
      assert.ok(result !== undefined && result.differences.length > 0);
    });
  }

  test('a policy that the product cannot express (R11)', async () => {
    const strict = file.policies['strict'] as Record<string, unknown>;
    for (const change of [
      { schemes: ['http'] },
      { crossHostRedirects: 'never' },
      { development: true },
    ]) {
      const policies = { strict: { ...strict, ...change } };
      const cases = [{ ...good, policy: 'strict' }];
      const [result] = await runCorpus(parseEgressCorpus(JSON.stringify({ policies, cases })));
      assert.match(String(result?.differences[0]), /could not be run/);
    }
  });
});

suite('npm run test:egress', () => {
  const start = (...args: readonly string[]) =>
    spawnSync(process.execPath, [PROGRAM, ...args], { encoding: 'utf8' });
  const write = (name: string, content: unknown): string => {
    const path = join(directory, name);
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  };
  const [first = {}, second = {}] = file.cases.filter(({ kind }) => kind === 'url');

  test('a file whose cases pass: the sum is the last line, exit code 0 (R11)', () => {
    const { status, stdout } = start(write('good.json', { ...file, cases: [first, second] }));
    assert.equal(stdout, '2 passed, 0 failed\n');
    assert.equal(status, 0);
  });

  test('a failure is shown with id, kind, policy, both verdicts and the requests, exit code 1 (R11)', () => {
    const wrong = { ...first, expect: 'allow' };
    const { status, stdout } = start(write('wrong.json', { ...file, cases: [wrong, second] }));
    assert.equal(status, 1);
    assert.match(
      stdout,
      new RegExp(`^FAILED ${String(first['id'])} \\(kind url, policy open\\)$`, 'm'),
    );
    assert.match(stdout, /^ {2}expected: allow/m);
    assert.match(stdout, /^ {2}got: {6}deny/m);
    assert.match(stdout, /^ {2}requests seen: none$/m);
    assert.ok(stdout.endsWith('\n1 passed, 1 failed\n'), stdout);
  });

  test('a wrong command line or file: exit code 64, and nothing on stdout (R11)', () => {
    const rows = [
      [],
      ['--verbose'],
      ['a.json', 'b.json'],
      [join(directory, 'absent.json')],
      [write('broken.json', '{')],
      [write('other.json', { cases: 3 })],
    ];
    for (const args of rows) {
      const { status, stdout, stderr } = start(...args);
      assert.deepEqual([status, stdout], [64, ''], args.join(' '));
      assert.notEqual(stderr, '');
    }
  });

  test('--help says how it is used, exit code 0 (R11)', () => {
    const { status, stdout } = start('--help');
    assert.equal(status, 0);
    assert.match(stdout, /^Usage: npm run test:egress -- FILE/);
  });
});
