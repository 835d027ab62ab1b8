import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import type { CancellableRequest } from '#sidecar/agent-api/in-flight-requests.ts';
import { IDLE_EXPIRY_MS, SessionStore } from '#sidecar/agent-api/session-store.ts';
import { admissionOf } from '#test/support/agent-api-fixture.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

const ANA = admissionOf('ana').principal;
const BOB = admissionOf('bob').principal;

function makeStore(maxSessions = 3) {
  const clock = new FakeClock();
  const faults: unknown[] = [];
  const counts: number[] = [];
  const store = new SessionStore({
    clock,
    maxSessions,
    onCloseFailed: (thrown) => faults.push(thrown),
    onCount: (count) => counts.push(count),
  });
  const open = (principal = ANA, alias?: string) =>
    store.open({ protocolVersion: '2025-11-25', principal, alias, clientCapabilities: {} });
  return { clock, store, open, faults, counts };
}

function requestOf(id: number, cancelByAgent: () => void = () => {}): CancellableRequest {
  return { request: { id }, cancelByAgent };
}

describe('the session store', () => {
  it('gives random ids of visible ASCII with at least 128 bits', () => {
    const { open } = makeStore(1000);
    const ids = new Set(Array.from({ length: 200 }, () => open()?.id));
    assert.equal(ids.size, 200);
    for (const id of ids) assert.match(id ?? '', /^[A-Za-z0-9_-]{24}$/);
  });

  it('finds a session for its principal on its path only (R20)', () => {
    const { store, open } = makeStore();
    const id = open(ANA, 'desk')?.id ?? '';
    assert.equal(store.find(id, ANA, 'desk')?.id, id);
    // An equal principal after a reload is the same caller.
    assert.equal(store.find(id, admissionOf('ana').principal, 'desk')?.id, id);
    assert.equal(store.find(id, BOB, 'desk'), undefined);
    assert.equal(store.find(id, { ...ANA, agent: 'other' }, 'desk'), undefined);
    assert.equal(store.find(id, ANA, undefined), undefined);
    assert.equal(store.find(`${id}x`, ANA, 'desk'), undefined);
  });

  it('ends a session after half an hour of silence, but not one with a request in flight', async () => {
    const { clock, store, open } = makeStore();
    const closed: string[] = [];
    const [idle, used, busy] = [open(), open(), open()];
    idle?.onClosed(() => void closed.push('idle'));
    used?.onClosed(() => void closed.push('used'));
    busy?.inFlight.add(requestOf(1));
    clock.advance(IDLE_EXPIRY_MS / 2);
    store.find(used?.id ?? '', ANA, undefined);
    clock.advance(IDLE_EXPIRY_MS / 2 + 120_000);
    await Promise.resolve();
    assert.deepEqual(closed, ['idle']);
    assert.equal(store.size, 2);
    clock.advance(IDLE_EXPIRY_MS + 120_000);
    assert.equal(store.size, 1);
    assert.equal(store.find(busy?.id ?? '', ANA, undefined), busy);
  });

  it('leaves no timer when no session is left', async () => {
    const { clock, store, open } = makeStore();
    open();
    await store.closeAll();
    assert.equal(clock.pendingTimers, 0);
  });

  it('when full drops the session that was silent longest, never one in use', () => {
    const { clock, store, open } = makeStore(3);
    const [first, second, third] = [open(), open(), open()];
    clock.advance(1000);
    store.find(first?.id ?? '', ANA, undefined);
    second?.inFlight.add(requestOf(1));
    const fourth = open();
    assert.ok(fourth);
    assert.equal(store.find(third?.id ?? '', ANA, undefined), undefined);
    assert.ok(store.find(second?.id ?? '', ANA, undefined));
    for (const session of [first, fourth]) session?.inFlight.add(requestOf(1));
    assert.equal(open(), undefined);
    assert.equal(store.size, 3);
  });

  it('closes with its listeners, cancels what is in flight, and survives a listener that fails', async () => {
    const { store, open, faults, counts } = makeStore();
    const session = open();
    assert.ok(session);
    const events: string[] = [];
    session.inFlight.add(requestOf(1, () => events.push('cancel')));
    session.onClosed(() => Promise.reject(new Error('upstream')));
    session.onClosed(async () => void events.push('closed'));
    session.onClosed(() => void events.push('taken back'))();
    await store.close(session);
    await store.close(session);
    assert.deepEqual(events, ['cancel', 'closed']);
    assert.equal(faults.length, 1);
    assert.deepEqual(counts, [1, 0]);
  });
});
