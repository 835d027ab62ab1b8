// Row by row: what arrives when, and what becomes of the process.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';

import { stopSignal } from '#core/stop-signal.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

type Arrival = 'SIGINT' | 'SIGTERM' | 'other reason';

const ROWS: readonly {
  readonly title: string;
  /** Each with the milliseconds since the one before it. */
  readonly arrivals: readonly (readonly [number, Arrival])[];
  readonly exits: readonly number[];
}[] = [
  {
    title: 'the first signal stops in order',
    arrivals: [[0, 'SIGTERM']],
    exits: [],
  },
  {
    title: 'a signal that arrives again within a moment is the same one',
    arrivals: [
      [0, 'SIGINT'],
      [2, 'SIGINT'],
      [497, 'SIGTERM'],
    ],
    exits: [],
  },
  {
    title: 'a later signal ends the process at once',
    arrivals: [
      [0, 'SIGINT'],
      [500, 'SIGTERM'],
    ],
    exits: [7],
  },
  {
    title: 'the moment is counted from the first signal, so that impatience is heard',
    arrivals: [
      [0, 'SIGINT'],
      [300, 'SIGINT'],
      [300, 'SIGINT'],
    ],
    exits: [7],
  },
  {
    title: 'another reason stops in order, whatever was asked before',
    arrivals: [
      [0, 'other reason'],
      [10, 'SIGTERM'],
    ],
    exits: [],
  },
  {
    title: 'a signal well after another reason ends the process at once',
    arrivals: [
      [0, 'other reason'],
      [500, 'SIGTERM'],
    ],
    exits: [7],
  },
  {
    title: 'another reason after a signal changes nothing',
    arrivals: [
      [0, 'SIGTERM'],
      [400, 'other reason'],
      [100, 'SIGTERM'],
    ],
    exits: [7],
  },
];

for (const { title, arrivals, exits } of ROWS) {
  test(title, (t) => {
    const seen = exitsOf(t);
    const clock = new FakeClock();
    const other = new AbortController();
    const stop = stopSignal({ clock, exitCode: 7, alsoAt: other.signal });
    assert.equal(stop.aborted, false);
    for (const [afterMs, arrival] of arrivals) {
      clock.advance(afterMs);
      if (arrival === 'other reason') other.abort();
      else process.emit(arrival, arrival);
      assert.equal(stop.aborted, true);
    }
    assert.deepEqual(seen, exits);
  });
}

/** Instead of ending; what listens for signals goes with the test. */
function exitsOf(t: TestContext): number[] {
  const before = (['SIGINT', 'SIGTERM'] as const).map(
    (signal) => [signal, process.listeners(signal)] as const,
  );
  for (const [signal] of before) process.removeAllListeners(signal);
  t.after(() => {
    for (const [signal, listeners] of before) {
      process.removeAllListeners(signal);
      for (const listener of listeners) process.on(signal, listener);
    }
  });
  const exits: number[] = [];
  t.mock.method(process, 'exit', (code: number) => void exits.push(code));
  return exits;
}
