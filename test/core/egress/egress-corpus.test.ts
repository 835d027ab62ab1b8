// The adversarial cases of test/corpus/egress.json against the product, by the same program that
// `npm run test:egress` is: real sockets behind the resolver and the socket's connect.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';

import { parseEgressCorpus } from '#test/egress/corpus-file.ts';
import { renderFailure } from '#test/egress/render-results.ts';
import { runCorpus } from '#test/egress/run-corpus.ts';

/** By kind: fewer would mean that cases were lost on the way. */
const AT_LEAST = {
  url: 190,
  ip: 130,
  metadata: 30,
  dns: 30,
  redirect: 50,
  oauth: 60,
  document: 9,
  policy: 18,
} as const;

const text = readFileSync(new URL('../../corpus/egress.json', import.meta.url), 'utf8');
const results = await runCorpus(parseEgressCorpus(text));

suite('egress corpus', () => {
  for (const result of results) {
    test(`${result.id} of kind ${result.kind} must be ${result.expected ?? 'readable'} (R11) (R13)`, () => {
      assert.deepEqual(result.differences, [], renderFailure(result));
    });
  }

  for (const [kind, least] of Object.entries(AT_LEAST)) {
    test(`the cases of kind ${kind} are all there`, () => {
      const found = results.filter((result) => result.kind === kind).length;
      assert.ok(found >= least, `${found}`);
    });
  }
});
