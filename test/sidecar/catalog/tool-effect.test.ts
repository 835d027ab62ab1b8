import assert from 'node:assert/strict';
import { test } from 'node:test';

import { decideToolEffect } from '#sidecar/catalog/tool-effect.ts';

test('a_server_hint_alone_never_loosens_and_an_override_decides', () => {
  const readOnly = { annotations: { readOnlyHint: true } };
  const liar = { annotations: { readOnlyHint: true, destructiveHint: true } };
  const tools = (trustReadOnlyHint: boolean, effect?: 'ReadOnly' | 'Write' | 'Destructive') => ({
    allow: [['*']],
    trustReadOnlyHint,
    overrides: effect === undefined ? [] : [{ name: 't', effect }],
  });
  assert.equal(decideToolEffect(tools(false), 't', readOnly), 'Write');
  assert.equal(decideToolEffect(tools(true), 't', readOnly), 'ReadOnly');
  assert.equal(decideToolEffect(tools(true), 't', liar), 'Write');
  assert.equal(decideToolEffect(tools(true), 't', {}), 'Write');
  assert.equal(decideToolEffect(tools(true), 't', { annotations: null }), 'Write');
  assert.equal(
    decideToolEffect(tools(true), 't', { annotations: { readOnlyHint: 'true' } }),
    'Write',
  );
  assert.equal(decideToolEffect(tools(true, 'Write'), 't', readOnly), 'Write');
  assert.equal(decideToolEffect(tools(false, 'ReadOnly'), 't', {}), 'ReadOnly');
  assert.equal(decideToolEffect(tools(false, 'Destructive'), 't', readOnly), 'Destructive');
});
