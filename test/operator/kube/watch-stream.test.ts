import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { isKubeError } from '#operator/kube/kube-error.ts';
import { parseWatchLine, splitLines } from '#operator/kube/watch-stream.ts';

async function* chunksOf(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  const places = [
    0,
    ...[...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b),
    bytes.length,
  ];
  for (const [index, end] of places.slice(1).entries())
    yield bytes.subarray(places[index] ?? 0, end);
}

async function collect(lines: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const line of lines) all.push(line);
  return all;
}

test('However the bytes are cut, the lines are the same', async () => {
  const text = fc.array(
    fc.string({ unit: 'grapheme', minLength: 1 }).map((word) => JSON.stringify(word)),
    { minLength: 1 },
  );
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat()), async (lines, cuts) => {
      const bytes = Buffer.from(`${lines.join('\n')}\n`);
      assert.deepEqual(await collect(splitLines(chunksOf(bytes, cuts))), lines);
    }),
  );
});

test('A whole last line without its end counts, half of one is an error', async () => {
  assert.deepEqual(await collect(splitLines(chunksOf(Buffer.from('{"a":1}'), []))), ['{"a":1}']);
  await assert.rejects(collect(splitLines(chunksOf(Buffer.from('{"a":1}\n{"b'), []))), (error) =>
    isKubeError(error, 'server'),
  );
});

test('A line without end is given up at the cap, before it fills the memory', async () => {
  let sent = 0;
  const endless = async function* (): AsyncGenerator<Uint8Array> {
    for (;;) {
      sent += 1_000;
      yield new Uint8Array(1_000).fill(0x61);
    }
  };
  await assert.rejects(collect(splitLines(endless(), 10_000)), /over 10000 bytes/);
  assert.ok(sent <= 11_000);
});

test('Whatever is no frame is an error, never nothing', () => {
  const lines = [
    '',
    'null',
    '[]',
    '42',
    'not json',
    '{}',
    '{"type":"ADDED"}',
    '{"type":"ADDED","object":{}}',
    '{"type":"NEW","object":{"metadata":{}}}',
  ];
  for (const line of lines)
    assert.throws(
      () => parseWatchLine(line, 'GET /x'),
      (error) => isKubeError(error, 'server'),
      line,
    );
});

test('An ERROR frame is the error that it holds', () => {
  const frame = (status: unknown) => JSON.stringify({ type: 'ERROR', object: status });
  const gone = frame({ kind: 'Status', code: 410, reason: 'Expired' });
  assert.throws(
    () => parseWatchLine(gone, 'GET /x'),
    (error) => isKubeError(error, 'expired'),
  );
  const busy = frame({ code: 429, reason: 'TooManyRequests', details: { retryAfterSeconds: 4 } });
  assert.throws(
    () => parseWatchLine(busy, 'GET /x'),
    (error) => isKubeError(error, 'too-many-requests') && error.retryAfterMs === 4_000,
  );
  assert.throws(
    () => parseWatchLine(frame(null), 'GET /x'),
    (error) => isKubeError(error, 'server'),
  );
});
