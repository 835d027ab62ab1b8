import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createCanonicalLog } from '#core/telemetry/canonical-log.ts';
import { LineBatch } from '#core/telemetry/line-batch.ts';
import { createSecretRegistry } from '#core/telemetry/redact.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

function makeLog() {
  const lines: string[] = [];
  const secrets = createSecretRegistry();
  const clock = new FakeClock();
  const log = createCanonicalLog({
    name: 'fairlead-sidecar',
    destination: { write: (line) => void lines.push(line) },
    clock,
    secrets,
  });
  return { log, lines, secrets, clock };
}

test('a canonical line reads like every other line of the log', () => {
  const { log, lines } = makeLog();
  log.write('warn', `,"event":${log.own('call')},"attempts":2`, 'call');
  const line = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
  assert.deepEqual(
    [line['level'], line['time'], line['service'], line['event'], line['attempts'], line['msg']],
    ['warn', '2026-01-01T00:00:00.000Z', 'fairlead-sidecar', 'call', 2, 'call'],
  );
  assert.ok(lines[0]?.endsWith('\n'));
});

test('the time follows the clock over the borders of seconds', () => {
  const { log, lines, clock } = makeLog();
  for (const ms of [7, 992, 1, 59_000]) {
    clock.advance(ms);
    log.write('info', '', 'x');
  }
  const times = lines.map((line) => (JSON.parse(line) as { time: string }).time.slice(17));
  assert.deepEqual(times, ['00.007Z', '00.999Z', '01.000Z', '00.000Z']);
});

test('whatever is not known to be our own is scrubbed (R102)', () => {
  const { log, secrets } = makeLog();
  secrets.add('live-secret-value');
  for (const value of [
    'Bearer abcdefghijkl',
    'x live-secret-value',
    'client_secret=hunter2hunter2',
  ])
    for (const text of [log.foreign(value), log.foreign(value), log.foreignOnce(value)])
      assert.match(JSON.parse(text) as string, /^[^\s=]*[\s=]?\[redacted\]$/);
});

test('a value that was remembered is scrubbed again when it has become a secret (R102)', () => {
  const { log, secrets } = makeLog();
  assert.equal(log.foreign('plain-tool-name'), '"plain-tool-name"');
  const forget = secrets.add('plain-tool-name');
  assert.equal(log.foreign('plain-tool-name'), '"[redacted]"');
  forget();
  assert.equal(log.foreign('plain-tool-name'), '"plain-tool-name"');
});

test('a value stays one JSON string, whatever is in it', () => {
  const { log } = makeLog();
  for (const value of ['say "hi"', 'a\nb', '\ud800', 'x'.repeat(5_000)])
    for (const text of [log.own(value), log.foreign(value), log.foreignOnce(value)])
      assert.equal(JSON.parse(text), value);
});

test('lines of a busy moment leave together, those of a quiet one after a moment', () => {
  const clock = new FakeClock();
  const writes: string[] = [];
  const batch = new LineBatch({ write: (text) => void writes.push(text) }, clock);
  batch.write('a\n');
  batch.write('b\n');
  assert.deepEqual(writes, []);
  clock.advance(25);
  assert.deepEqual(writes, ['a\nb\n']);
  batch.write(`${'x'.repeat(140_000)}\n`);
  assert.equal(writes.length, 2);
  batch.write('last\n');
  batch.end();
  assert.equal(writes.at(-1), 'last\n');
  assert.equal(clock.pendingTimers, 0);
});
