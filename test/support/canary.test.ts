import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { suite, test } from 'node:test';

import { assertNoLeak, findLeaks, plantCanary, plantSecrets } from './canary.ts';

suite('the canary search', () => {
  const canary = plantCanary('access token');
  const { value } = canary;
  const spellings: readonly (readonly [string, string])[] = [
    ['as it is', `Bearer ${value}`],
    ['in upper case', value.toUpperCase()],
    ['cut in half', `token ${value.slice(0, value.length / 2)}…`],
    ['in hex', Buffer.from(value).toString('hex')],
    ['in base64', Buffer.from(value).toString('base64')],
    ['in base64 behind one byte', Buffer.from(`:${value}`).toString('base64')],
    ['in base64 behind two bytes', Buffer.from(`a:${value}`).toString('base64')],
    ['as a whole hash', createHash('sha256').update(value).digest('hex')],
  ];
  for (const [title, text] of spellings) {
    test(`finds a secret ${title}`, () => {
      assert.notDeepEqual(findLeaks(`before ${text} after`, [canary]), []);
      assert.throws(
        () => assertNoLeak(text, [canary]),
        (error) => !String(error).includes(value),
      );
    });
  }

  test('a clean output has no leaks, and a short fingerprint is none', () => {
    const fingerprint = createHash('sha256').update(value).digest('hex').slice(0, 12);
    assert.deepEqual(findLeaks(`session ${fingerprint}`, [canary]), []);
    assertNoLeak('{"level":"info"}', plantSecrets());
  });
});
