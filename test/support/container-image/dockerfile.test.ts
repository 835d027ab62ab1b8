import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseFinalStage } from './dockerfile.ts';

test('the final stage is read, comments, continuations and earlier stages left out', () => {
  const stage = parseFinalStage(
    [
      'FROM a AS build',
      'RUN make \\',
      ' && make install',
      'COPY . .',
      '',
      'FROM scratch',
      '# why',
      'COPY --from=build /x/ /',
      'COPY a b \\',
      '  /c/',
      'USER 1:2',
      'ENTRYPOINT ["/a", "b c"]',
    ].join('\n'),
  );
  assert.deepEqual(stage, {
    base: 'scratch',
    copies: [
      { stage: 'build', sources: ['/x/'], target: '/' },
      { stage: undefined, sources: ['a', 'b'], target: '/c/' },
    ],
    user: '1:2',
    entrypoint: ['/a', 'b c'],
  });
});

test('what the test would not understand is an error', () => {
  for (const line of ['RUN x', 'COPY --chown=1 a b', 'COPY a', 'ENTRYPOINT node x', 'ENV A=1']) {
    assert.throws(() => parseFinalStage(`FROM scratch\n${line}\n`), Error, line);
  }
});
