import assert from 'node:assert/strict';
import { test } from 'node:test';

import { SessionSlot } from '#sidecar/connections/session-slot.ts';
import type { UpstreamSession } from '#sidecar/upstream/upstream-types.ts';

function makeSession(closed: string[] = [], id = 's'): UpstreamSession {
  const side = {
    era: 'legacy',
    protocolVersion: '2025-11-25',
    capabilities: {},
    serverInfo: undefined,
  } as const;
  return { id, side, headers: [], close: () => Promise.resolve(void closed.push(id)) };
}

test('all_who_wait_share_one_opening_and_later_callers_get_the_session_at_once', async () => {
  let opened = 0;
  const session = makeSession();
  const slot = new SessionSlot(async () => {
    opened += 1;
    return session;
  });
  const both = await Promise.all([slot.get(), slot.get()]);
  assert.deepEqual(both, [session, session]);
  assert.equal(slot.get(), session);
  assert.equal(opened, 1);
});

test('a_failed_opening_is_tried_again_by_the_next_caller', async () => {
  let opened = 0;
  const slot = new SessionSlot(async () => {
    opened += 1;
    if (opened === 1) throw new Error('away');
    return makeSession();
  });
  await assert.rejects(Promise.resolve(slot.get()), /away/);
  assert.equal((await slot.get()).id, 's');
});

test('forgetting_a_lost_session_opens_a_new_one_and_leaves_a_newer_one_alone', async () => {
  let opened = 0;
  const slot = new SessionSlot(async () => makeSession([], `s${(opened += 1)}`));
  const first = await slot.get();
  slot.forget(first);
  const second = await slot.get();
  slot.forget(first);
  assert.equal(slot.get(), second);
  assert.equal(second.id, 's2');
});

test('closing_ends_the_session_also_when_it_is_still_being_opened', async () => {
  const closed: string[] = [];
  const { promise, resolve } = Promise.withResolvers<UpstreamSession>();
  const slot = new SessionSlot(() => promise);
  const waiting = slot.get();
  const closing = slot.close();
  resolve(makeSession(closed));
  await waiting;
  await closing;
  assert.deepEqual(closed, ['s']);
});

test('an_offered_session_is_taken_only_by_an_empty_slot', async () => {
  const slot = new SessionSlot(async () => makeSession([], 'opened'));
  assert.equal(slot.offer(makeSession([], 'offered')), true);
  assert.equal(slot.offer(makeSession([], 'second')), false);
  assert.equal((await slot.get()).id, 'offered');
});
