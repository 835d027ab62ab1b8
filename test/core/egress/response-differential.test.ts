// Our client against undici, on the same bytes from a loopback server: whatever ours takes as an
// answer, undici takes as the same one. Ours may refuse more; what, is listed here.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';
import { Client } from 'undici';
import type { Dispatcher } from 'undici';

import { openRawServer } from '#test/support/raw-server.ts';
import { RecordedCall } from '#test/support/recorded-call.ts';

import { poolOf } from './raw-scene.ts';

const RUNS = 600;

/** Where ours is stricter than undici: by what is in the answer then. */
const STRICTER: readonly (readonly [string, RegExp])[] = [
  ['a coding other than chunked', /^transfer-encoding:(?! *chunked *\r)/im],
  ['chunked twice', /^transfer-encoding: [^]*\ntransfer-encoding: /im],
  ['chunks of HTTP/1.0', /HTTP\/1\.0[^]*transfer-encoding/i],
  ['an interim answer of HTTP/1.0', /^HTTP\/1\.0 1/],
  ['an extension of a chunk with nothing in it', /;(?:a=)?[;=\r]/],
  [
    'a control character in the reason',
    /^HTTP\/1\.[01] [0-9]{3} .*[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/m,
  ],
  ['a CR in the reason', /^HTTP\/1\.[01] .*\r\r/m],
  ['a line break before a status line', /(?:^|\r\n\r\n)[\r\n]+HTTP/],
];
/** Where undici is: an interim answer that nobody asked for, a tab behind a length. */
const LAXER = /^HTTP\/1\.1 100 |^content-length: [0-9]+ *\t/im;

const line = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('Content-Type: text/plain', 'Date: x', 'A: 1', 'a:  2 '),
  },
  { weight: 1, arbitrary: fc.constantFrom('Connection: close', 'Connection: keep-alive') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('Keep-Alive: timeout=5', '__proto__: x', 'constructor: y'),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'Content-Length: 3',
      'Content-Length: 3, 3',
      'Content-Length: +3',
      'content-length : 3',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'Transfer-Encoding: chunked',
      'Transfer-Encoding: gzip, chunked',
      'Transfer-Encoding: chunked, gzip',
      'Transfer-Encoding: identity',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ' folded: 1',
      'no colon',
      ': empty',
      'a\tb: 1',
      'é: 1',
      'v: é',
      'e:',
    ),
  },
);
const startLine = fc.oneof(
  { weight: 8, arbitrary: fc.constant('HTTP/1.1 200 OK') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'HTTP/1.0 200 OK',
      'HTTP/1.1 204 No',
      'HTTP/1.1 304 Not',
      'HTTP/1.1 500',
      'HTTP/1.1 404 ',
      'HTTP/2 200 OK',
      'HTTP/1.1 99 x',
      'HTTP/1.1 101 Up',
    ),
  },
);
const extension = fc.constantFrom('', '', '', ';a', ';a=b', ';a="b c"', '; a', ';', ';a=', ' ');
const chunked = fc
  .tuple(
    fc.array(fc.tuple(fc.string({ minLength: 1, maxLength: 20 }), extension)),
    extension,
    fc.constantFrom('', '', 'T: 1\r\n', 'T 1\r\n'),
  )
  .map(
    ([chunks, last, trailer]) =>
      `Transfer-Encoding: chunked\r\n\r\n${chunks
        .map(([text, words]) => `${Buffer.byteLength(text).toString(16)}${words}\r\n${text}\r\n`)
        .join('')}0${last}\r\n${trailer}\r\n`,
  );
const sized = fc
  .string({ maxLength: 30 })
  .map((text) => `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
const unsized = fc.string({ maxLength: 30 }).map((text) => `\r\n${text}`);
/** One byte is lost, doubled or replaced. */
const slip = fc.option(
  fc.tuple(
    fc.nat(400),
    fc.constantFrom(
      '',
      '\r',
      '\n',
      '\r\n',
      '\0',
      ' ',
      '\t',
      ':',
      ';',
      ',',
      '0',
      'f',
      '\x7f',
      '\xff',
    ),
    fc.nat(1),
  ),
  { freq: 2 },
);
const interim = fc.constantFrom(
  '',
  '',
  '',
  'HTTP/1.1 103 Hints\r\nlink: a\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n',
);
const answers = fc
  .tuple(
    interim,
    startLine,
    fc.array(line, { maxLength: 4 }),
    fc.oneof(chunked, sized, unsized),
    slip,
  )
  .map(([before, first, lines, rest, change]) => {
    const text = Buffer.from(`${before}${[first, ...lines].join('\r\n')}\r\n${rest}`).toString(
      'latin1',
    );
    if (change === null) return text;
    const [at, byte, lost] = change;
    const place = at % text.length;
    return text.slice(0, place) + byte + text.slice(place + lost);
  });

async function answerFrom(
  dispatcher: Pick<Dispatcher, 'dispatch'>,
): Promise<readonly unknown[] | undefined> {
  const call = new RecordedCall();
  dispatcher.dispatch({ method: 'POST', path: '/', body: '{}' }, call);
  await call.ended.promise;
  if (call.error !== undefined) return undefined;
  return [call.status, Object.entries(call.headers ?? {}).map(withoutBlanks), call.body];
}

/** undici leaves blanks behind a value, which are no part of it (RFC 9110 section 5.5). */
function withoutBlanks([name, value]: readonly [string, unknown]): unknown {
  return [name, [value].flat().map((text) => String(text).replace(/[ \t]+$/, ''))];
}

test('what our client takes as an answer undici takes as the same one, and what it refuses is known', async () => {
  let text = '';
  await using server = await openRawServer(({ socket }) => socket.end(text, 'latin1'));
  await using pool = poolOf(server.port);
  const client = new Client(`http://127.0.0.1:${server.port}`);
  await using _ = { [Symbol.asyncDispose]: () => client.destroy() };
  const seen = { both: 0, neither: 0, stricter: 0 };
  const compare = async (next: string): Promise<void> => {
    text = next;
    const ours = await answerFrom(pool);
    const theirs = await answerFrom(client);
    if (ours === undefined) {
      if (theirs === undefined) seen.neither += 1;
      else {
        seen.stricter += 1;
        assert.ok(
          STRICTER.some(([, sign]) => sign.test(text)),
          `refused ${JSON.stringify(text)}, which undici takes as ${JSON.stringify(theirs)}`,
        );
      }
      return;
    }
    if (theirs === undefined && LAXER.test(text)) return;
    assert.deepEqual(ours, theirs);
    seen.both += 1;
  };
  await fc.assert(fc.asyncProperty(answers, compare), { numRuns: RUNS, seed: 9112 });
  assert.ok(seen.both > RUNS / 5 && seen.neither > RUNS / 10, JSON.stringify(seen));
});
