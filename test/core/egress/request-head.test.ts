import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import type { Dispatcher } from 'undici';

import { renderRequestHead } from '#core/egress/request-head.ts';

const HOST_LINE = 'host: mcp.test\r\nconnection: keep-alive\r\n';

function render(change: Partial<Dispatcher.DispatchOptions> = {}, bodyBytes = 2): string {
  return renderRequestHead({ method: 'POST', path: '/mcp', ...change }, HOST_LINE, bodyBytes);
}

suite('renderRequestHead', () => {
  test('it writes the line, the constant part, the headers in order, the length', () => {
    assert.equal(
      render({ headers: ['Accept', '*/*', 'x-empty', '', 'x-latin1', 'é\t~'] }),
      `POST /mcp HTTP/1.1\r\n${HOST_LINE}Accept: */*\r\nx-empty: \r\nx-latin1: é\t~\r\ncontent-length: 2\r\n\r\n`,
    );
  });

  test('headers may be a list, a Map or a record, and have several values', () => {
    const lines = 'a: 1\r\nb: 2\r\nb: 3\r\n';
    const expected = `POST /mcp HTTP/1.1\r\n${HOST_LINE}${lines}content-length: 2\r\n\r\n`;
    const record = { a: '1', b: ['2', '3'], c: undefined };
    assert.equal(render({ headers: record }), expected);
    assert.equal(render({ headers: new Map(Object.entries(record)) }), expected);
    assert.equal(render({ headers: ['a', '1', 'b', '2', 'b', '3'] }), expected);
    assert.equal(render({ headers: null }), render());
  });

  test('a length is said where there is a body, or a method that has one', () => {
    assert.match(render({}, 0), /content-length: 0\r\n\r\n$/);
    assert.doesNotMatch(render({ method: 'DELETE' }, 0), /content-length/);
    assert.match(render({ method: 'DELETE' }, 5), /content-length: 5\r\n\r\n$/);
    assert.doesNotMatch(render({ method: 'GET' }, 0), /content-length/);
  });

  const ends = ['\r', '\n', '\r\n', '\0', 'Ċ', 'č', '\u2028', '\x7f', '\x01'];
  type Row = readonly [string, Partial<Dispatcher.DispatchOptions>];
  const refused: readonly Row[] = [
    ...ends.flatMap((end): Row[] => [
      [`a value with ${JSON.stringify(end)}`, { headers: ['a', `b${end}c: d`] }],
      [`a later value with ${JSON.stringify(end)}`, { headers: { a: ['b', `c${end}`] } }],
      [`a name with ${JSON.stringify(end)}`, { headers: [`a${end}b`, 'c'] }],
      [`a path with ${JSON.stringify(end)}`, { path: `/${end}` }],
      [`a method with ${JSON.stringify(end)}`, { method: `GET${end}` }],
    ]),
    ['a value beyond latin1', { headers: ['a', 'Ω'] }],
    ['an empty name', { headers: ['', 'b'] }],
    ['a name with a colon', { headers: ['a:b', 'c'] }],
    ['a name with a blank', { headers: ['a ', 'c'] }],
    ['a name beyond ASCII', { headers: ['é', 'c'] }],
    ['a list of odd length', { headers: ['a'] }],
    ['a value that is no text', { headers: ['a', 1] as unknown as string[] }],
    ['a value that makes itself a text', { headers: { a: { toString: () => 'b' } as never } }],
    ['a path with a blank', { path: '/a HTTP/1.1' }],
    ['a path of another form', { path: 'http://other.test/' }],
    ['an empty path', { path: '' }],
    ['a method with a blank', { method: 'GET /x' }],
    ['an empty method', { method: '' }],
    ['a query apart from the path', { query: { a: 'b' } }],
    ['a wait for 100', { expectContinue: true }],
    ...[
      'Host',
      'Content-Length',
      'Transfer-Encoding',
      'CONNECTION',
      'keep-alive',
      'Upgrade',
      'expect',
    ].map((name): Row => [`the header ${name}`, { headers: [name, '1'] }]),
  ];
  for (const [title, change] of refused) {
    test(`${title} makes no head, and the error quotes nothing`, () => {
      assert.throws(() => render(change), {
        code: 'UND_ERR_INVALID_ARG',
        message: /^[a-z ]+ of the request is not valid$/,
      });
    });
  }
});
