import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { errors } from 'undici';

import { classifyUpstreamError } from '#core/egress/classify-upstream-error.ts';
import { EgressError } from '#core/egress/egress-error.ts';

function withCode(code: string, members: Readonly<Record<string, unknown>> = {}): Error {
  return Object.assign(new Error('secret text'), { code, ...members });
}

suite('classifyUpstreamError', () => {
  const notSent: readonly (readonly [string, unknown])[] = [
    [
      'a denial of ours',
      new EgressError('EGRESS_DENIED', { stage: 'resolve', reason: 'special-address' }),
    ],
    [
      'a failed connection of ours',
      new EgressError('SERVER_UNAVAILABLE', { stage: 'connect', reason: 'tls-name' }),
    ],
    [
      'a failure of ours inside another error',
      new Error('x', {
        cause: new EgressError('SERVER_UNAVAILABLE', {
          stage: 'connect',
          reason: 'connect-failed',
        }),
      }),
    ],
    ['undici connect time-out', new errors.ConnectTimeoutError()],
    ['undici closed pool', new errors.ClientClosedError()],
    ['a refused connection', withCode('ECONNREFUSED')],
    ['an unknown name', withCode('ENOTFOUND')],
    ['a resolver in trouble', withCode('EAI_AGAIN')],
    ['a certificate for another name', withCode('ERR_TLS_CERT_ALTNAME_INVALID')],
    ['an expired certificate', withCode('CERT_HAS_EXPIRED')],
    ['an unreachable host while connecting', withCode('EHOSTUNREACH', { syscall: 'connect' })],
  ];
  for (const [title, error] of notSent) {
    test(`${title} proves that nothing was sent`, () =>
      assert.equal(classifyUpstreamError(error).kind, 'not-sent'));
  }

  const unknown: readonly (readonly [string, unknown])[] = [
    ['a closed socket', new errors.SocketError('other side closed')],
    ['a reset', withCode('ECONNRESET')],
    ['a broken pipe', withCode('EPIPE')],
    ['a headers time-out', new errors.HeadersTimeoutError()],
    ['a body time-out', new errors.BodyTimeoutError()],
    ['an abort', new errors.RequestAbortedError()],
    ['a destroyed pool', new errors.ClientDestroyedError()],
    ['an answer that is not HTTP', withCode('HPE_INVALID_CONSTANT')],
    ['an unreachable host on an open socket', withCode('EHOSTUNREACH', { syscall: 'read' })],
    ['an error nobody has heard of', withCode('E_NEW')],
    ['something that is not an error', 'text'],
    ['nothing', undefined],
  ];
  for (const [title, error] of unknown) {
    test(`${title} leaves the outcome unknown once the request was started`, () => {
      assert.equal(classifyUpstreamError(error).kind, 'unknown');
    });
    test(`${title} is not-sent when the request was never started`, () => {
      assert.equal(classifyUpstreamError(error, false).kind, 'not-sent');
    });
  }

  test('a reason is a word, never text of the error', () => {
    for (const [, error] of [...notSent, ...unknown])
      assert.match(classifyUpstreamError(error).reason, /^[a-z-]+$/);
  });

  test('a chain of causes that bites its own tail ends', () => {
    const first = new Error('a');
    const second = new Error('b', { cause: first });
    first.cause = second;
    assert.equal(classifyUpstreamError(first).kind, 'unknown');
  });
});
