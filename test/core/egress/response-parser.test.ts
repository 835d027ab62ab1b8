import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { suite, test } from 'node:test';

import { classifyUpstreamError } from '#core/egress/classify-upstream-error.ts';
import { ResponseParser } from '#core/egress/response-parser.ts';
import type { ResponseListener } from '#core/egress/response-parser.ts';

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly hasSurplus: boolean;
  readonly isKeptAlive: boolean;
}

type Outcome = Answer | 'fault' | 'unfinished';

/** Keeps what the parser tells; fails when it tells more after the end. */
class Recorder implements ResponseListener {
  readonly parser = new ResponseParser(this);
  readonly chunks: Buffer[] = [];
  head: { readonly status: number; readonly headers: IncomingHttpHeaders } | undefined;
  surplus: boolean | undefined;
  error: Error | undefined;

  onHead(status: number, headers: IncomingHttpHeaders): void {
    assert.equal(this.head ?? this.error, undefined);
    this.head = { status, headers };
  }

  onBody(chunk: Buffer): void {
    assert.ok(this.head !== undefined && this.error === undefined && this.surplus === undefined);
    assert.ok(chunk.length > 0);
    this.chunks.push(chunk);
  }

  onEnd(hasSurplus: boolean): void {
    assert.ok(this.head !== undefined && this.error === undefined && this.surplus === undefined);
    this.surplus = hasSurplus;
  }

  onFault(error: Error): void {
    assert.ok(this.error === undefined && this.surplus === undefined);
    this.error = error;
  }

  get outcome(): Outcome {
    if (this.error !== undefined) return 'fault';
    if (this.head === undefined || this.surplus === undefined) return 'unfinished';
    return {
      ...this.head,
      body: Buffer.concat(this.chunks).toString('latin1'),
      hasSurplus: this.surplus,
      isKeptAlive: this.parser.framing?.isKeptAlive ?? false,
    };
  }
}

interface FeedOptions {
  readonly isHeadRequest?: boolean;
  readonly isEnded?: boolean;
}

function feed(pieces: readonly Buffer[], options: FeedOptions = {}): Outcome {
  const recorder = new Recorder();
  recorder.parser.begin(options.isHeadRequest ?? false);
  for (const piece of pieces) recorder.parser.push(piece);
  if (options.isEnded === true && recorder.outcome === 'unfinished') recorder.parser.finish();
  return recorder.outcome;
}

const MAX_CUTS = 1_000;

/** Whole, in single bytes, and in two pieces cut at every place; every way must give the same. */
function read(text: string, options: FeedOptions = {}): Outcome {
  const bytes = Buffer.from(text, 'latin1');
  const whole = feed([bytes], options);
  const step = Math.ceil(bytes.length / MAX_CUTS);
  const places = Array.from(bytes.keys()).filter((at) => at % step === 0);
  const cuts = places.map((at) => [bytes.subarray(0, at), bytes.subarray(at)]);
  for (const pieces of [Array.from(bytes, (byte) => Buffer.from([byte])), ...cuts]) {
    const other = feed(pieces, options);
    if (typeof whole === 'string' || typeof other === 'string') assert.equal(other, whole);
    // Bytes behind the end are only seen when they come with it.
    else assert.deepEqual({ ...other, hasSurplus: whole.hasSurplus }, whole);
  }
  return whole;
}

const OK = 'HTTP/1.1 200 OK\r\n';

function answer(change: Partial<Answer>): Answer {
  return { status: 200, headers: {}, body: '', hasSurplus: false, isKeptAlive: true, ...change };
}

suite('ResponseParser and good answers', () => {
  const rows: readonly (readonly [string, string, Partial<Answer>, FeedOptions?])[] = [
    [
      'a body of a given length',
      `${OK}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`,
      { headers: { 'content-type': 'application/json', 'content-length': '2' }, body: '{}' },
    ],
    [
      'a length of nothing',
      `${OK}content-length: 0\r\n\r\n`,
      { headers: { 'content-length': '0' } },
    ],
    [
      'chunks, their extensions and trailers',
      `${OK}Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n00A;a=b;c="d\\"; e"\r\n0123456789\r\n0;x\r\nX-Sum: 1\r\n\r\n`,
      { headers: { 'transfer-encoding': 'Chunked' }, body: 'abc0123456789' },
    ],
    [
      'a chunk that holds CRLF and looks like the end',
      `${OK}transfer-encoding: chunked\r\n\r\n7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n`,
      { headers: { 'transfer-encoding': 'chunked' }, body: '\r\n0\r\n\r\n' },
    ],
    [
      'a body that ends with the connection',
      `${OK}\r\nabc`,
      { body: 'abc', isKeptAlive: false },
      { isEnded: true },
    ],
    ['an empty one', `${OK}\r\n`, { isKeptAlive: false }, { isEnded: true }],
    ['204 without a body', 'HTTP/1.1 204 No Content\r\n\r\n', { status: 204 }],
    [
      '304 that tells the length of what it does not send',
      'HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n',
      { status: 304, headers: { 'content-length': '5' }, isKeptAlive: false },
    ],
    [
      'an answer to HEAD',
      `${OK}content-length: 5\r\n\r\n`,
      { headers: { 'content-length': '5' }, isKeptAlive: false },
      { isHeadRequest: true },
    ],
    [
      'interim answers before the real one',
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${OK}content-length: 1\r\n\r\nx`,
      { headers: { 'content-length': '1' }, body: 'x' },
    ],
    [
      'a status line without a reason',
      'HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n',
      { headers: { 'content-length': '0' } },
    ],
    [
      'HTTP/1.0, whose connection is not used again',
      'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx',
      {
        headers: { connection: 'keep-alive', 'content-length': '1' },
        body: 'x',
        isKeptAlive: false,
      },
    ],
    [
      'a connection that the server closes',
      `${OK}Connection: x, Close\r\ncontent-length: 0\r\n\r\n`,
      { headers: { connection: 'x, Close', 'content-length': '0' }, isKeptAlive: false },
    ],
    [
      'values with blanks, latin1 and nothing in them',
      `${OK}a: \t b c \t\r\nb:\r\nc:é\r\ncontent-length: 0\r\n\r\n`,
      { headers: { a: 'b c', b: '', c: 'é', 'content-length': '0' } },
    ],
    [
      'repeated headers as a list',
      `${OK}a: 1\r\nA: 2\r\na: 3\r\ncontent-length: 0\r\n\r\n`,
      { headers: { a: ['1', '2', '3'], 'content-length': '0' } as unknown as IncomingHttpHeaders },
    ],
    [
      'bytes behind the end',
      `${OK}content-length: 1\r\n\r\nxHTTP/1.1`,
      { headers: { 'content-length': '1' }, body: 'x', hasSurplus: true },
    ],
  ];
  for (const [title, text, expected, options] of rows) {
    test(`it reads ${title}, however it is cut`, () => {
      assert.deepEqual(read(text, options), answer(expected));
    });
  }

  test('names that every object inherits are plain headers', () => {
    const result = read(
      `${OK}__proto__: a\r\n__PROTO__: b\r\nconstructor: c\r\ncontent-length: 0\r\n\r\n`,
    );
    assert.ok(typeof result !== 'string');
    assert.deepEqual(Object.entries(result.headers), [
      ['__proto__', ['a', 'b']],
      ['constructor', 'c'],
      ['content-length', '0'],
    ]);
    assert.equal(Object.getPrototypeOf(result.headers), Object.prototype);
  });

  test('body chunks are views of what came, not copies', () => {
    const recorder = new Recorder();
    recorder.parser.begin(false);
    const bytes = Buffer.from(`${OK}content-length: 4\r\n\r\nab`);
    recorder.parser.push(bytes);
    const rest = Buffer.from('cd');
    recorder.parser.push(rest);
    assert.equal(recorder.chunks[0]?.buffer, bytes.buffer);
    assert.equal(recorder.chunks[1], rest);
  });

  test('how long the server keeps an idle connection is read', () => {
    for (const [value, ms] of [
      ['timeout=5', 5_000],
      ['max=3, Timeout=7', 7_000],
      ['max=3', undefined],
    ] as const) {
      const recorder = new Recorder();
      recorder.parser.begin(false);
      recorder.parser.push(Buffer.from(`${OK}keep-alive: ${value}\r\ncontent-length: 0\r\n\r\n`));
      assert.equal(recorder.parser.framing?.keepAliveMs, ms);
    }
  });

  test('one parser reads one answer after another', () => {
    const recorder = new Recorder();
    for (let round = 0; round < 3; round++) {
      recorder.head = undefined;
      recorder.surplus = undefined;
      recorder.parser.begin(false);
      recorder.parser.push(Buffer.from(`${OK}content-length: 1\r\n\r\nx`));
    }
    assert.equal(recorder.chunks.length, 3);
  });

  test('after stop nothing more is told, also of the chunk that is being read', () => {
    const told: string[] = [];
    const parser: ResponseParser = new ResponseParser({
      onHead: () => parser.stop(),
      onBody: () => told.push('body'),
      onEnd: () => told.push('end'),
      onFault: () => told.push('fault'),
    });
    parser.begin(false);
    parser.push(Buffer.from(`${OK}content-length: 1\r\n\r\nx`));
    parser.push(Buffer.from('nonsense'));
    assert.deepEqual([told, parser.finish()], [[], false]);
  });
});

suite('ResponseParser and bad answers', () => {
  const long = 'x'.repeat(16_400);
  const rows: readonly (readonly [string, string])[] = [
    ['something else than HTTP', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['HTTP/2', 'HTTP/2 200 OK\r\n\r\n'],
    ['HTTP/1.2', 'HTTP/1.2 200 OK\r\n\r\n'],
    ['a lower-case protocol', 'http/1.1 200 OK\r\n\r\n'],
    ['an empty line before the status', `\r\n\r\n${OK}\r\n`],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['a status below 100', 'HTTP/1.1 099 OK\r\n\r\n'],
    ['two blanks before the status', 'HTTP/1.1  200 OK\r\n\r\n'],
    ['101', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n'],
    ['an interim answer of HTTP/1.0', `HTTP/1.0 103 Hints\r\n\r\n${OK}\r\n`],
    ['interim answers without end', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(9)],
    ['a bad header in an interim answer', `HTTP/1.1 103 Hints\r\na b: c\r\n\r\n${OK}\r\n`],
    ['a line without a colon', `${OK}abc\r\n\r\n`],
    ['an empty name', `${OK}: x\r\n\r\n`],
    ['a blank before the colon', `${OK}a : x\r\n\r\n`],
    ['a name that is no token', `${OK}a(b): x\r\n\r\n`],
    ['a name beyond ASCII', `${OK}é: x\r\n\r\n`],
    ['a folded line', `${OK}a: b\r\n c: d\r\n\r\n`],
    ['a bare LF between lines', `${OK}a: b\nc: d\r\n\r\n`],
    ['bare LFs only', 'HTTP/1.1 200 OK\ncontent-length: 0\n\n'],
    ['a bare CR', `${OK}a: b\rc: d\r\n\r\n`],
    ['a CR before a CRLF', `${OK}a: b\r\r\n\r\n`],
    ['a NUL', `${OK}a: b\0\r\n\r\n`],
    ['another control character', `${OK}a: \x1b[0m\r\n\r\n`],
    ['a NUL in the reason', 'HTTP/1.1 200 O\0K\r\n\r\n'],
    ['a head that is too long', `${OK}a: ${long}\r\n\r\n`],
    ['a head that does not end', `${OK}a: ${long}`],
    ['a length that is no number', `${OK}content-length: x\r\n\r\n`],
    ['an empty length', `${OK}content-length:\r\n\r\n`],
    ['a signed length', `${OK}content-length: +1\r\n\r\nx`],
    ['a negative length', `${OK}content-length: -1\r\n\r\nx`],
    ['a hexadecimal length', `${OK}content-length: 0x1\r\n\r\nx`],
    ['a list of lengths', `${OK}content-length: 1, 1\r\n\r\nx`],
    ['two equal lengths', `${OK}content-length: 1\r\ncontent-length: 1\r\n\r\nx`],
    ['two different lengths', `${OK}content-length: 1\r\ncontent-length: 2\r\n\r\nx`],
    ['a length beyond 2^53', `${OK}content-length: 9007199254740993\r\n\r\n`],
    [
      'a length and chunks',
      `${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`,
    ],
    ['a coding before chunked', `${OK}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ['a coding after chunked', `${OK}transfer-encoding: chunked, x\r\n\r\n0\r\n\r\n`],
    [
      'chunked twice',
      `${OK}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['another coding', `${OK}transfer-encoding: identity\r\n\r\n`],
    ['chunks of HTTP/1.0', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    ...(
      [
        ['an empty size', '\r\n'],
        ['a size that is no number', 'g\r\n'],
        ['a signed size', '-1\r\n'],
        ['a size with a prefix', '0x1\r\nx\r\n'],
        ['a blank before the size', ' 1\r\nx\r\n'],
        ['a blank behind the size', '1 \r\nx\r\n'],
        ['a size beyond 2^53', '20000000000001\r\n'],
        ['a size that wraps at 2^64', '10000000000000001\r\nx\r\n0\r\n\r\n'],
        ['a size line that ends in LF', '1\nx\r\n0\r\n\r\n'],
        ['an extension with a LF', '1;a\nb\r\nx\r\n0\r\n\r\n'],
        ['an extension that is too long', `1;${'a'.repeat(1_100)}\r\nx\r\n0\r\n\r\n`],
        ['a chunk that is longer than it says', '1\r\nxy\r\n0\r\n\r\n'],
        ['a chunk that ends in LF', '1\r\nx\n0\r\n\r\n'],
        ['a chunk that ends in CR alone', '1\r\nx\rx0\r\n\r\n'],
        ['a trailer that is no header', '0\r\na b\r\n\r\n'],
        ['a trailer with a NUL', '0\r\na: \0\r\n\r\n'],
        ['trailers that are too long', `0\r\na: ${long}\r\n\r\n`],
      ] as const
    ).map(([title, body]) => [title, `${OK}transfer-encoding: chunked\r\n\r\n${body}`] as const),
  ];
  for (const [title, text] of rows) {
    test(`it refuses ${title}, however it is cut`, () => assert.equal(read(text), 'fault'));
  }

  test('extensions of many chunks are no answer but a way to keep us busy', () => {
    const recorder = new Recorder();
    recorder.parser.begin(false);
    recorder.parser.push(Buffer.from(`${OK}transfer-encoding: chunked\r\n\r\n`));
    const chunk = Buffer.from(`1;${'a'.repeat(1_000)}\r\nx\r\n`);
    for (let count = 0; count < 60; count++) recorder.parser.push(chunk);
    assert.equal(recorder.error, undefined);
    for (let count = 0; count < 10; count++) recorder.parser.push(chunk);
    assert.equal(classifyUpstreamError(recorder.error).kind, 'unknown');
  });

  test('a fault is a protocol error whose outcome is unknown, and quotes nothing', () => {
    for (const text of ['secret\r\n\r\n', `${OK}secret: ${long}\r\n\r\n`]) {
      const recorder = new Recorder();
      recorder.parser.begin(false);
      recorder.parser.push(Buffer.from(text));
      const { kind, code } = classifyUpstreamError(recorder.error);
      assert.deepEqual([kind, code], ['unknown', 'UPSTREAM_PROTOCOL_ERROR']);
      assert.doesNotMatch(String(recorder.error), /secret/);
    }
  });

  test('an end before the answer is whole is none', () => {
    for (const text of [
      '',
      OK,
      `${OK}content-length: 2\r\n\r\nx`,
      `${OK}transfer-encoding: chunked\r\n\r\n1\r\nx\r\n`,
      `${OK}transfer-encoding: chunked\r\n\r\n0\r\n`,
    ])
      assert.equal(read(text, { isEnded: true }), 'unfinished');
  });
});
