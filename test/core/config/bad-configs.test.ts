// The rendered twins of the bad objects against the sidecar's own load: what the API server and
// offline validation refuse, the sidecar refuses too, before it opens anything.

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { checkSidecarConfig, configRevision } from '#core/config/sidecar-config.ts';
import { BAD_OBJECTS } from '#test/support/bad-objects.ts';
import { editValue } from '#test/support/edit-value.ts';
import { GOOD_CONFIG } from '#test/support/good-objects.ts';

const PRODUCTION = { development: false } as const;

/** With the revision of its changed content, so that only the change can be the fault. */
function withRevision(body: unknown): unknown {
  return { ...(body as Readonly<Record<string, unknown>>), revision: configRevision(body) };
}

suite('the sidecar on the rendered twins of the bad objects', () => {
  for (const { title, sidecar, proves } of BAD_OBJECTS) {
    if ('none' in sidecar) continue;
    test(`refuses ${title} (${proves})`, () => {
      const verdict = checkSidecarConfig(
        withRevision(editValue(GOOD_CONFIG, sidecar.config)),
        PRODUCTION,
      );
      assert.equal(verdict.kind, 'invalid');
      const paths = verdict.kind === 'invalid' ? verdict.issues.map(({ path }) => path) : [];
      assert.ok(
        paths.includes(sidecar.path),
        `blames ${JSON.stringify(paths)} in place of ${sidecar.path}`,
      );
    });
  }
});

test('the sidecar accepts the good config that the twins start from (R7)', () => {
  const verdict = checkSidecarConfig(withRevision(GOOD_CONFIG), PRODUCTION);
  assert.equal(verdict.kind, 'ok');
});

test('the sidecar refuses a config that was changed without its revision (R7)', () => {
  const config = withRevision(GOOD_CONFIG) as Readonly<Record<string, unknown>>;
  const verdict = checkSidecarConfig({ ...config, listeners: { agentPort: 7000 } }, PRODUCTION);
  assert.deepEqual(verdict.kind === 'invalid' ? verdict.issues.map(({ path }) => path) : [], [
    'revision',
  ]);
});
