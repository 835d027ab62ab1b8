import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import fc from 'fast-check';

import {
  canonicalJson,
  checkSidecarConfig,
  configRevision,
  encodeSidecarConfig,
} from '#core/config/sidecar-config.ts';
import { editValue } from '#test/support/edit-value.ts';
import { GOOD_CONFIG } from '#test/support/good-objects.ts';

const rules = { development: false };

function withRevision(body: object): Readonly<Record<string, unknown>> {
  return { ...body, revision: configRevision(body) };
}

function shuffleKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffleKeys);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, shuffleKeys(member)]),
  );
}

suite('canonical JSON', () => {
  test('the order of keys never shows, and nothing is lost', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const plain: unknown = JSON.parse(JSON.stringify(value));
        assert.equal(canonicalJson(shuffleKeys(plain)), canonicalJson(plain));
        assert.deepEqual(JSON.parse(canonicalJson(plain)), plain);
      }),
      { numRuns: 500 },
    );
  });

  test('values that differ have texts that differ', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        const [left, right] = [
          JSON.parse(JSON.stringify(a)),
          JSON.parse(JSON.stringify(b)),
        ] as unknown[];
        let isEqual = true;
        try {
          assert.deepStrictEqual(left, right);
        } catch {
          isEqual = false;
        }
        assert.equal(canonicalJson(left) === canonicalJson(right), isEqual);
      }),
      { numRuns: 500 },
    );
  });

  test('a member that is undefined is a member that is absent', () => {
    assert.equal(canonicalJson({ b: 1, a: undefined }), '{"b":1}');
  });
});

suite('the rendered config', () => {
  test('equal input gives equal bytes and revision, and the sidecar reads them', () => {
    const first = encodeSidecarConfig(GOOD_CONFIG);
    const second = encodeSidecarConfig(shuffleKeys(GOOD_CONFIG) as typeof GOOD_CONFIG);
    assert.deepEqual(second, first);
    const verdict = checkSidecarConfig(JSON.parse(first.text), rules);
    assert.equal(verdict.kind === 'ok' && verdict.config.revision, first.revision);
    assert.ok(first.text.endsWith('}\n'));
  });

  test('a field that this version does not know is ignored, but it counts for the revision', () => {
    const body = { ...GOOD_CONFIG, addedLater: { by: ['a newer operator'] } };
    const verdict = checkSidecarConfig(withRevision(body), rules);
    assert.equal(verdict.kind, 'ok');
    assert.ok(verdict.kind === 'ok' && !('addedLater' in verdict.config));
    assert.notEqual(configRevision(body), configRevision(GOOD_CONFIG));
  });

  test('an unknown feature in requires is a rejection that names it', () => {
    const verdict = checkSidecarConfig(
      withRevision({ ...GOOD_CONFIG, requires: ['tool-lock'] }),
      rules,
    );
    assert.deepEqual(verdict, { kind: 'unsupported', features: ['tool-lock'] });
  });

  test('an unknown feature is named even when what it brought does not fit this schema', () => {
    const body = editValue(GOOD_CONFIG, { 'servers.0.transport': 'Telepathy' }) as object;
    const verdict = checkSidecarConfig(withRevision({ ...body, requires: ['telepathy'] }), rules);
    assert.equal(verdict.kind, 'unsupported');
  });

  test('content that does not match the revision is refused', () => {
    const config = withRevision(GOOD_CONFIG);
    const verdict = checkSidecarConfig({ ...config, drain: { timeoutMs: 1 } }, rules);
    assert.deepEqual(verdict.kind === 'invalid' && verdict.issues.map(({ path }) => path), [
      'revision',
    ]);
  });

  for (const input of [undefined, null, 'text', 7, [], {}]) {
    test(`${JSON.stringify(input)} is no config and no crash`, () => {
      assert.equal(checkSidecarConfig(input, rules).kind, 'invalid');
    });
  }
});
