import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { judgeConfig } from '#sidecar/config/judge-config.ts';
import { serverConfig, sidecarConfig } from '#test/support/sidecar-config.ts';

const DEVELOPMENT = { development: true };

function rejected(text: string, rules = DEVELOPMENT) {
  const judged = judgeConfig(text, rules);
  assert.equal(judged.kind, 'rejected');
  if (judged.kind !== 'rejected') throw new Error('unreachable');
  return judged;
}

describe('the verdict on a configuration', () => {
  it('accepts what the renderer writes, unknown fields included', () => {
    const { text, revision } = sidecarConfig({
      servers: [serverConfig('desk')],
      ...{ future: { a: 1 } },
    });
    const judged = judgeConfig(text, DEVELOPMENT);
    assert.deepEqual(judged.kind === 'accepted' && judged.config.revision, revision);
  });

  it('names each wrong field by its path (R7)', () => {
    const limits = { ...serverConfig('desk').limits, maxConcurrency: 0, streamReadTimeoutMs: 1 };
    const { rejection, mayBeHalfWritten } = rejected(
      sidecarConfig({ servers: [serverConfig('desk', 9, { limits })] }).text,
    );
    assert.equal(rejection.code, 'CONFIG_INVALID');
    assert.ok(
      rejection.issues.some(({ path }) => path === 'servers[0].limits.maxConcurrency'),
      JSON.stringify(rejection.issues),
    );
    assert.equal(mayBeHalfWritten, false);
  });

  it('takes plain http in development only (R3)', () => {
    const { text } = sidecarConfig({ servers: [serverConfig('desk')] });
    assert.ok(
      rejected(text, { development: false }).rejection.issues.some(
        ({ path }) => path === 'servers[0].endpoint',
      ),
    );
  });

  it('refuses a feature that it does not know, and says which', () => {
    const { rejection, revision } = rejected(sidecarConfig({ requires: ['quotas'] }).text);
    assert.deepEqual(
      [rejection.code, rejection.issues],
      ['CONFIG_UNSUPPORTED', [{ path: 'requires', message: 'needs the feature "quotas"' }]],
    );
    assert.match(revision ?? '', /^[0-9a-f]{64}$/);
  });

  it('takes every cut of a text for half written', () => {
    const { text } = sidecarConfig({ servers: [serverConfig('desk')] });
    for (let length = 0; length < text.trimEnd().length; length += 7) {
      assert.equal(
        rejected(text.slice(0, length)).mayBeHalfWritten,
        true,
        `after ${length} characters`,
      );
    }
  });

  it('takes a text that does not match its own revision for half written', () => {
    const { text } = sidecarConfig();
    assert.equal(
      rejected(text.replace('ana@example.com', 'eve@example.com')).mayBeHalfWritten,
      true,
    );
  });
});
