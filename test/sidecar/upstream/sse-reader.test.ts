import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createParser } from 'eventsource-parser';
import fc from 'fast-check';

import { SseReader } from '#sidecar/upstream/sse-reader.ts';

interface Read {
  readonly events: string[];
  readonly isTooLarge: boolean;
}

function read(chunks: readonly (Uint8Array | string)[], maxEventBytes = 1_000_000): Read {
  const events: string[] = [];
  let isTooLarge = false;
  const listener = {
    onEvent: (data: string) => void events.push(data),
    onTooLarge: () => {
      isTooLarge = true;
    },
  };
  const reader = new SseReader(listener, maxEventBytes);
  for (const chunk of chunks) reader.push(Buffer.from(chunk as Uint8Array));
  return { events, isTooLarge };
}

const rows: readonly (readonly [what: string, stream: string, events: readonly string[]])[] = [
  ['LF', 'data: a\n\ndata: b\n\n', ['a', 'b']],
  ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b']],
  ['CR, without waiting for more', 'data: a\r\rdata: b\r\r', ['a', 'b']],
  ['several data lines', 'data: {\ndata:  "a":1\ndata: }\n\n', ['{\n "a":1\n}']],
  ['no space behind the colon', 'data:a\n\n', ['a']],
  ['only one space taken off', 'data:  a\n\n', [' a']],
  ['data without a colon', 'data: a\ndata\n\n', ['a\n']],
  ['comments', ': hello\n\n:\r\n\ndata: a\n: within\n\n', ['a']],
  ['a byte order mark', '\ufeffdata: a\n\n', ['a']],
  [
    'a byte order mark on a later line, which is an unknown field',
    'data: a\n\n\ufeffdata: b\n\n',
    ['a'],
  ],
  ['the event type message', 'event: message\ndata: a\n\n', ['a']],
  ['an empty event type', 'event:\ndata: a\n\n', ['a']],
  ['other event types', 'event: ping\ndata: a\n\ndata: b\n\n', ['b']],
  [
    'ids, retry times and unknown fields',
    'id: 1\nretry: 5\nfoo: bar\ndatum: x\ndata: a\n\n',
    ['a'],
  ],
  ['a priming event without data', 'id: 1\ndata:\n\ndata: a\n\n', ['a']],
  ['an event that the end cuts off', 'data: a\n\ndata: b\n', ['a']],
  ['text outside ASCII', 'data: 世界 \u{1f600}\n\n', ['世界 \u{1f600}']],
];

for (const [what, stream, events] of rows) {
  test(`an event stream is read: ${what}`, () =>
    assert.deepEqual(read([stream]), { events, isTooLarge: false }));
  test(`an event stream is read byte by byte: ${what}`, () => {
    const bytes = Buffer.from(stream);
    const single = Array.from(bytes, (_byte, index) => bytes.subarray(index, index + 1));
    assert.deepEqual(read(single), { events, isTooLarge: false });
  });
}

const line = fc.oneof(
  fc
    .string({ unit: 'binary', maxLength: 12 })
    .map((text) => `data: ${text.replace(/[\r\n]/g, '')}`),
  fc.constantFrom(
    '',
    '',
    '',
    ': comment',
    'event: message',
    'event: other',
    'id: 7',
    'retry: 10',
    'data',
    'data:',
    'x: y',
  ),
);
const stream = fc
  .tuple(
    fc.boolean(),
    fc.array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 24 }),
  )
  .map(([hasMark, lines]) =>
    Buffer.from((hasMark ? '\ufeff' : '') + lines.map(([text, end]) => text + end).join('')),
  );

function split(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const points = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...points].map((start, index) => bytes.subarray(start, points[index] ?? bytes.length));
}

test('any chunking of the same bytes gives the same events', () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(400), { maxLength: 20 }), (bytes, cuts) => {
      assert.deepEqual(read(split(bytes, cuts)), read([bytes]));
    }),
    { numRuns: 1_000 },
  );
});

test('invalid UTF-8 is read the same in any chunking', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 60 }),
      fc.array(fc.nat(80), { maxLength: 8 }),
      (noise, cuts) => {
        const bytes = Buffer.concat([Buffer.from('data: '), noise, Buffer.from('\n\n')]);
        assert.deepEqual(read(split(bytes, cuts)), read([bytes]));
      },
    ),
  );
});

test('the events are those of eventsource-parser', () => {
  fc.assert(
    fc.property(stream, (bytes) => {
      const expected: string[] = [];
      const parser = createParser({
        onEvent: ({ event, data }) => {
          if ((event === undefined || event === 'message') && data !== '') expected.push(data);
        },
      });
      parser.feed(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
      assert.deepEqual(read([bytes]).events, expected);
    }),
    { numRuns: 1_000 },
  );
});

const tooLarge: readonly (readonly [what: string, chunks: readonly string[]])[] = [
  ['one long line', [`data: ${'x'.repeat(101)}\n\n`]],
  ['many short lines', Array.from({ length: 30 }, () => 'data: x\n')],
  ['a line without end', ['data: ', ...Array.from({ length: 30 }, () => 'xxxxx')]],
  ['a comment without end', [':', ...Array.from({ length: 30 }, () => 'xxxxx')]],
];

for (const [what, chunks] of tooLarge) {
  test(`${what} over the cap ends the reading`, () => {
    assert.deepEqual(read([...chunks, '\n\ndata: later\n\n'], 100), {
      events: [],
      isTooLarge: true,
    });
  });
}

test('an event of exactly the cap is read, however long the stream is', () => {
  const data = 'x'.repeat(100);
  const { events, isTooLarge } = read(
    Array.from({ length: 50 }, () => `data: ${data}\n\n`),
    100,
  );
  assert.equal(events.length, 50);
  assert.equal(isTooLarge, false);
});

test('nothing is reported after stop, not even the rest of the same chunk', () => {
  const events: string[] = [];
  const reader: SseReader = new SseReader(
    {
      onEvent(data) {
        events.push(data);
        reader.stop();
      },
      onTooLarge: () => assert.fail(),
    },
    1_000,
  );
  reader.push(Buffer.from('data: a\n\ndata: b\n\n'));
  reader.push(Buffer.from('data: c\n\n'));
  assert.deepEqual(events, ['a']);
});
