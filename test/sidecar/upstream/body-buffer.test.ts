import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { BodyBuffer } from '#sidecar/upstream/body-buffer.ts';

function gather(pieces: readonly Buffer[]): BodyBuffer {
  const buffer = new BodyBuffer();
  for (const piece of pieces) assert.equal(buffer.push(piece, Infinity), true);
  return buffer;
}

test('a body that came in one piece is that piece', () => {
  const piece = Buffer.from('whole');
  assert.equal(gather([piece]).whole(), piece);
  assert.equal(new BodyBuffer().whole().length, 0);
});

test('any pieces come back whole and in order', () => {
  const size = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 2_000, max: 70_000 }));
  fc.assert(
    fc.property(fc.array(size, { maxLength: 60 }), (sizes) => {
      const pieces = sizes.map((length, index) => Buffer.alloc(length, index % 251));
      const buffer = gather(pieces);
      assert.ok(buffer.whole().equals(Buffer.concat(pieces)));
      assert.equal(buffer.bytes, Buffer.concat(pieces).length);
    }),
    { numRuns: 200 },
  );
});

test('single bytes cost about what they are, also between large pieces', () => {
  const single = Buffer.from('x');
  const large = Buffer.alloc(2_048);
  for (const pieces of [
    Array.from({ length: 1_000_000 }, () => single),
    Array.from({ length: 4_000 }, (_none, index) => (index % 2 === 0 ? single : large)),
  ]) {
    const before = process.memoryUsage();
    const buffer = gather(pieces);
    const after = process.memoryUsage();
    const grown = after.external - before.external + (after.heapUsed - before.heapUsed);
    assert.ok(grown < 4 * buffer.bytes + 4_000_000, `${String(grown)} for ${String(buffer.bytes)}`);
  }
});

test('over the cap nothing is kept', () => {
  const buffer = new BodyBuffer();
  assert.equal(buffer.push(Buffer.alloc(10), 15), true);
  assert.equal(buffer.push(Buffer.alloc(10), 15), false);
  assert.equal(buffer.whole().length, 0);
});
