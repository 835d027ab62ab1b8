// A server that does not act on a call and says where it is to be sent again: within its origin that
// is done, byte for byte, and every other redirect ends the call as not sent (R14).

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { sendForStatus } from '#sidecar/upstream/send-for-status.ts';
import type { FakeReply } from '#test/support/fake-mcp-server.ts';
import { FakeMcpServer } from '#test/support/fake-mcp-server.ts';
import { SidecarFixture, serverAt } from '#test/support/sidecar-fixture.ts';

import { answerOf, BODY, pair, RESULT } from './request-pair.ts';
import type { Pair } from './request-pair.ts';

function to(location: string | string[], status = 307): FakeReply {
  return { kind: 'reply', status, headers: { location }, body: 'moved' };
}

/** Answers by path; what is not named is an answer. */
async function redirecting(routes: Readonly<Record<string, FakeReply>>): Promise<Pair> {
  const both = await pair(undefined);
  both.server.intercept(({ path }) => routes[path] ?? { kind: 'reply', body: RESULT });
  return both;
}

function pathsOf({ server }: Pair): readonly string[] {
  return server.requests.map(({ path }) => path);
}

suite('a call that is redirected', () => {
  for (const status of [307, 308])
    test(`by ${status} within the origin is sent again, byte for byte, with all that it had (R14)`, async () => {
      await using both = await redirecting({ '/mcp': to('/mcp/?v=2', status) });
      const headers = ['mcp-session-id', 's', 'authorization', 'Bearer t'];
      const sink = await answerOf(both.target, { headers });
      assert.deepEqual(sink.heard, [{ kind: 'json', status: 200, body: JSON.stringify(RESULT) }]);
      assert.deepEqual(pathsOf(both), ['/mcp', '/mcp/?v=2']);
      for (const request of both.server.requests) {
        assert.equal(request.body, BODY);
        assert.equal(request.headers['mcp-session-id'], 's');
        assert.equal(request.headers['authorization'], 'Bearer t');
      }
    });

  test('may end in a stream', async () => {
    await using both = await redirecting({
      '/mcp': to('/s'),
      '/s': { kind: 'stream', chunks: [`data: ${JSON.stringify(RESULT)}\n\n`] },
    });
    const sink = await answerOf(both.target);
    assert.deepEqual(
      sink.heard.map(({ kind }) => kind),
      ['stream-start', 'message', 'stream-end'],
    );
  });

  test('goes three hops and no further', async () => {
    await using both = await redirecting({
      '/mcp': to('/1'),
      '/1': to('/2'),
      '/2': to('/3'),
      '/3': to('/4'),
    });
    const sink = await answerOf(both.target);
    assert.deepEqual(pathsOf(both), ['/mcp', '/1', '/2', '/3']);
    assert.ok(sink.last?.kind === 'failure');
    assert.deepEqual(
      [sink.last.failure.code, sink.last.failure.sent],
      ['UPSTREAM_REDIRECTED', 'no'],
    );
  });

  const refused: readonly [string, string | string[], number][] = [
    ['301 to GET', '/mcp/', 301],
    ['302 to GET', '/mcp/', 302],
    ['303 to GET', '/mcp/', 303],
    ['another origin', 'https://auth.example.com/mcp', 307],
    ['another port', 'http://127.0.0.1:1/mcp', 307],
    ['another spelling of the host', 'http://2130706433/mcp', 307],
    ['itself', '/mcp', 308],
    ['two places', ['/a', '/b'], 307],
    ['a URL with a password', 'http://u:p@127.0.0.1/', 307],
    ['a backslash', '/\\evil.org/', 307],
    ['a file', 'file:///etc/passwd', 307],
    ['nowhere', '', 307],
  ];
  for (const [what, location, status] of refused)
    test(`to ${what} is not sent again (R14)`, async () => {
      await using both = await redirecting({ '/mcp': to(location, status) });
      const sink = await answerOf(both.target);
      assert.deepEqual(pathsOf(both), ['/mcp']);
      assert.ok(sink.last?.kind === 'failure');
      assert.deepEqual(
        [sink.last.failure.code, sink.last.failure.sent],
        ['UPSTREAM_REDIRECTED', 'no'],
      );
    });

  test('and then fails has the verdict of where it failed', async () => {
    await using both = await redirecting({
      '/mcp': to('/mcp/'),
      '/mcp/': { kind: 'reply', status: 503, body: 'x' },
    });
    const sink = await answerOf(both.target);
    assert.ok(sink.last?.kind === 'failure');
    assert.deepEqual(
      [sink.last.failure.code, sink.last.failure.sent, sink.last.failure.status],
      ['OUTCOME_UNKNOWN', 'unknown', 503],
    );
  });

  test('with a body that does not end is not sent again, and was not acted on', async () => {
    await using both = await redirecting({
      '/mcp': {
        kind: 'stream',
        status: 307,
        headers: { location: '/mcp/' },
        chunks: ['x'],
        end: 'hold',
      },
    });
    const sink = await answerOf(both.target, { requestTimeoutMs: 100 });
    assert.deepEqual(pathsOf(both), ['/mcp']);
    assert.ok(sink.last?.kind === 'failure');
    assert.deepEqual(
      [sink.last.failure.code, sink.last.failure.sent],
      ['UPSTREAM_REDIRECTED', 'no'],
    );
  });
});

test('a notification goes where the server says, within its origin', async () => {
  await using both = await redirecting({
    '/mcp': to('/mcp/'),
    '/mcp/': { kind: 'reply', status: 202 },
  });
  const request = { httpMethod: 'POST', headers: [], body: BODY, timeoutMs: 5_000 } as const;
  assert.equal(await sendForStatus(both.target, request), 202);
  assert.deepEqual(pathsOf(both), ['/mcp', '/mcp/']);
});

test('a write tool behind a redirect to the path with a slash is executed once', async () => {
  await using server = await FakeMcpServer.start({ era: 'modern', path: '/mcp/' });
  server.intercept(({ path }) => (path === '/mcp' ? to('/mcp/') : undefined));
  await using sidecar = await SidecarFixture.open([serverAt('up', server.port)]);
  const called = await sidecar.modern('tools/call', { name: 'up__echo', arguments: { a: 1 } });
  assert.equal(called.status, 200, called.text);
  assert.deepEqual(
    server.received('tools/call').map(({ path }) => path),
    ['/mcp', '/mcp/'],
  );
  assert.equal(sidecar.status().servers[0]?.connections.inFlight, 0);
});
