import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { drain } from '#sidecar/drain.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

interface Load {
  /** Requests in flight, and when the last one came or went, at a time since the drain began. */
  readonly inFlight: (ms: number) => number;
  readonly lastRequestMs?: (ms: number) => number;
}

/** Runs a drain to its end on a clock that a test moves; gives what happened when. */
async function runDrain(
  load: Load,
  options: {
    readonly timeoutMs?: number;
    readonly isNativeSidecar?: boolean;
    readonly closeUpstream?: () => Promise<unknown>;
  } = {},
) {
  const clock = new FakeClock();
  const events: [number, string][] = [];
  let isInterrupted = false;
  const note = (event: string): void => void events.push([clock.monotonicMs(), event]);
  const inFlight = (): number => (isInterrupted ? 0 : load.inFlight(clock.monotonicMs()));
  const report = drain({
    clock,
    isNativeSidecar: options.isNativeSidecar ?? false,
    timeoutMs: options.timeoutMs ?? 20_000,
    api: {
      get inFlight() {
        return inFlight();
      },
      get idleMs() {
        return inFlight() > 0
          ? 0
          : clock.monotonicMs() - (load.lastRequestMs?.(clock.monotonicMs()) ?? -Infinity);
      },
      refuseNew: () => note('refuse'),
      interruptAll: () => {
        if (inFlight() > 0) note('interrupt');
        isInterrupted = true;
      },
    },
    stopAccepting: () => note('stop'),
    closeUpstream: options.closeUpstream ?? (() => Promise.resolve()),
    closeAll: async () => note('close'),
  });
  let isDone = false;
  void report.finally(() => (isDone = true));
  while (!isDone) {
    clock.advance(10);
    for (let tick = 0; tick < 10; tick += 1) await Promise.resolve();
    assert.ok(clock.monotonicMs() < 60_000, `the drain does not end: ${JSON.stringify(events)}`);
  }
  const first = (event: string): number | undefined =>
    events.find(([, name]) => name === event)?.[0];
  return { report: await report, first, pendingTimers: clock.pendingTimers };
}

describe('the drain of a plain process', () => {
  it('goes on accepting for a second when nothing happens, then ends', async () => {
    const { report, first, pendingTimers } = await runDrain({ inFlight: () => 0 });
    assert.ok(Number(first('stop')) >= 1_000 && Number(first('stop')) < 1_200);
    assert.ok(Number(first('refuse')) >= Number(first('stop')));
    assert.equal(report.interrupted, 0);
    assert.equal(pendingTimers, 0);
  });

  it('goes on accepting while requests come, until there was a second without one', async () => {
    const { report, first } = await runDrain({
      inFlight: (ms) => (ms < 4_000 && ms % 500 < 300 ? 1 : 0),
      lastRequestMs: (ms) => Math.min(3_800, Math.floor(ms / 500) * 500 + 300),
    });
    assert.ok(Number(first('stop')) >= 4_800, `stopped at ${first('stop')}`);
    assert.ok(Number(first('stop')) < 5_200);
    assert.equal(report.interrupted, 0);
  });

  it('waits for long calls that were in flight when it stopped accepting', async () => {
    const { report, first } = await runDrain({ inFlight: (ms) => (ms < 9_000 ? 3 : 0) });
    assert.equal(report.interrupted, 0);
    assert.ok(Number(first('close')) >= 9_000);
  });

  it('interrupts what is left early enough to end before its time is up', async () => {
    const { report, first } = await runDrain(
      { inFlight: () => 5 },
      { closeUpstream: () => new Promise(() => {}) },
    );
    assert.equal(report.interrupted, 5);
    assert.ok(Number(first('interrupt')) >= 17_000);
    assert.ok(Number(first('close')) < 20_000, `closed at ${first('close')}`);
  });

  it('with no time at all interrupts at once', async () => {
    const { report, first } = await runDrain({ inFlight: () => 1 }, { timeoutMs: 0 });
    assert.equal(report.interrupted, 1);
    assert.ok(Number(first('interrupt')) <= 20);
  });

  it('is not held up by remote servers that fail or hang', async () => {
    for (const closeUpstream of [
      () => new Promise(() => {}),
      () => Promise.reject(new Error('refused')),
    ]) {
      const { first, pendingTimers } = await runDrain({ inFlight: () => 0 }, { closeUpstream });
      assert.ok(Number(first('close')) < 3_000);
      assert.equal(pendingTimers, 0);
    }
  });
});

describe('the drain of a native sidecar', () => {
  it('refuses new requests at once, keeps listening to say so, and ends with the last answer', async () => {
    const { report, first } = await runDrain(
      { inFlight: (ms) => (ms < 3_000 ? 1 : 0) },
      { isNativeSidecar: true },
    );
    assert.equal(first('refuse'), 0);
    assert.ok(Number(first('stop')) >= 3_000 && Number(first('close')) < 3_200);
    assert.equal(report.interrupted, 0);
  });

  it('ends at once when nothing is in flight', async () => {
    const { first } = await runDrain({ inFlight: () => 0 }, { isNativeSidecar: true });
    assert.ok(Number(first('close')) < 100);
  });
});
