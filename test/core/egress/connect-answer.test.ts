import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { readConnectAnswer, renderConnect } from '#core/egress/connect-answer.ts';
import type { ConnectAnswer } from '#core/egress/connect-answer.ts';
import { USER_AGENT } from '#core/version.ts';

const read = (text: string) => readConnectAnswer(Buffer.from(text, 'latin1'));
const failed = { kind: 'failed', reason: 'proxy-answer' } as const;

suite('what a proxy is asked', () => {
  test('is the target and our name, and nothing of the request to come', () => {
    assert.equal(
      renderConnect({ host: 'mcp.example.com', port: 443 }),
      `CONNECT mcp.example.com:443 HTTP/1.1\r\nHost: mcp.example.com:443\r\nUser-Agent: ${USER_AGENT}\r\n\r\n`,
    );
  });

  test('names an IPv6 address in brackets', () => {
    assert.match(
      renderConnect({ host: 'fd00:ec2::254', port: 80 }),
      /^CONNECT \[fd00:ec2::254\]:80 HTTP\/1\.1\r\nHost: \[fd00:ec2::254\]:80\r\n/,
    );
  });
});

suite('what a proxy answers', () => {
  const rows: readonly (readonly [string, string, ConnectAnswer])[] = [
    ['200 opens', 'HTTP/1.1 200 OK\r\n\r\n', { kind: 'open', headBytes: 19 }],
    ['200 of HTTP/1.0 opens', 'HTTP/1.0 200 OK\r\n\r\n', { kind: 'open', headBytes: 19 }],
    ['200 without a phrase opens', 'HTTP/1.1 200\r\n\r\n', { kind: 'open', headBytes: 16 }],
    [
      'a length in a 200 is ignored',
      'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n',
      { kind: 'open', headBytes: 38 },
    ],
    ['bytes behind it are not its own', 'HTTP/1.1 200\r\n\r\nxyz', { kind: 'open', headBytes: 16 }],
    ['403 is a policy', 'HTTP/1.1 403 Forbidden\r\n\r\n', { kind: 'denied', status: 403 }],
    ['407 is a policy', 'HTTP/1.1 407 No\r\n\r\n', { kind: 'denied', status: 407 }],
    ['404 is a policy', 'HTTP/1.1 404 No\r\n\r\n', { kind: 'denied', status: 404 }],
    ...[408, 425, 429, 500, 502, 503, 504, 599].map(
      (status) =>
        [
          `${String(status)} says nothing about what is allowed`,
          `HTTP/1.1 ${String(status)} x\r\n\r\n`,
          { kind: 'failed', reason: 'proxy-error', status },
        ] as const,
    ),
    ...[100, 101, 201, 204, 299, 301, 302, 399].map(
      (status) =>
        [
          `${String(status)} is no answer to a CONNECT`,
          `HTTP/1.1 ${String(status)} x\r\n\r\n`,
          { ...failed, status },
        ] as const,
    ),
    [
      'chunks are no tunnel',
      'HTTP/1.1 200 OK\r\ntransfer-Encoding: chunked\r\n\r\n',
      { ...failed, status: 200 },
    ],
    ['a half head is awaited', 'HTTP/1.1 200 OK\r\nVia: x', { kind: 'incomplete' }],
    ['a half status line is awaited', 'HTT', { kind: 'incomplete' }],
    ['no byte is awaited', '', { kind: 'incomplete' }],
    ['HTTP/0.9 is no answer', '<html>', failed],
    ['HTTP/2 is no answer', 'HTTP/2 200\r\n\r\n', failed],
    ['a lower-case protocol is no answer', 'http/1.1 200 OK\r\n\r\n', failed],
    ['garbage is no answer', '\u0016\u0003\u0001', failed],
    ['bare line feeds are no answer', 'HTTP/1.1 200 OK\n\n', failed],
    ['a bare carriage return is no answer', 'HTTP/1.1 200 OK\rX\r\n\r\n', failed],
    ['a folded field is no answer', 'HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n', failed],
    ['a space before the colon is no answer', 'HTTP/1.1 200 OK\r\nA : b\r\n\r\n', failed],
    ['a control character is no answer', 'HTTP/1.1 200 OK\r\nA: \u0000\r\n\r\n', failed],
    ['a status of two digits is no answer', 'HTTP/1.1 20 OK\r\n\r\n', failed],
    ['a status with a sign is no answer', 'HTTP/1.1 +200 OK\r\n\r\n', failed],
    ['a second space is no answer', 'HTTP/1.1  200 OK\r\n\r\n', failed],
    ['a blank line before it is no answer', '\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', failed],
  ];
  for (const [title, text, expected] of rows)
    test(title, () => assert.deepEqual(read(text), expected));

  test('a head is bounded, whole or not', () => {
    const head = (bytes: number): string =>
      `HTTP/1.1 200 OK\r\nA: ${'a'.repeat(bytes - 'HTTP/1.1 200 OK\r\nA: '.length)}`;
    assert.equal(read(`${head(16_384)}\r\n\r\n`).kind, 'open');
    assert.deepEqual(read(`${head(16_385)}\r\n\r\n`), failed);
    assert.equal(read(head(16_387)).kind, 'incomplete');
    assert.deepEqual(read(head(16_388)), failed);
  });

  test('means the same however it is cut', () => {
    const text = 'HTTP/1.1 200 OK\r\nVia: a\r\n\r\nrest';
    for (let cut = 0; cut < text.indexOf('rest'); cut += 1)
      assert.equal(read(text.slice(0, cut)).kind, 'incomplete', String(cut));
  });
});
