import assert from 'node:assert/strict';
import { test } from 'node:test';

import { nextCallId } from '#sidecar/audit/call-id.ts';

test('each id is new and looks like a UUID', () => {
  const ids = Array.from({ length: 1_000 }, () => nextCallId());
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids)
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
});
