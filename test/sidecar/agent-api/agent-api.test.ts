import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';

import { AgentApiFixture, admissionOf, modernMessage } from '#test/support/agent-api-fixture.ts';
import { answerEcho } from '#test/support/relay-double.ts';

async function openSocket(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

/** Everything that the server says until `pattern` has been seen. */
async function readUntil(socket: Socket, pattern: RegExp): Promise<string> {
  let seen = '';
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    seen += String(chunk);
    if (pattern.test(seen)) return seen;
  }
  throw new Error(`the server closed the connection after ${JSON.stringify(seen)}`);
}

function head(port: number, length: number, extra = ''): string {
  return `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${extra}\r\n`;
}

describe('bodies', () => {
  const broken: readonly [string, string | Buffer][] = [
    ['nothing', ''],
    ['no JSON', '{'],
    ['two values', '{} {}'],
    ['a byte-order mark', '\ufeff{}'],
    ['invalid UTF-8', Buffer.from('7b2278223a22ff227d', 'hex')],
    ['NaN', '{"jsonrpc":"2.0","id":NaN,"method":"ping"}'],
  ];
  for (const [title, body] of broken) {
    it(`of ${title} are 400 with -32700 and no id`, async () => {
      await using fixture = await AgentApiFixture.open();
      const { status, json } = await fixture.send({ body });
      assert.deepEqual([status, json.error?.code, json.id], [400, -32700, undefined]);
    });
  }

  it('that cannot be parsed leave nothing of themselves in the answer or the log', async () => {
    await using fixture = await AgentApiFixture.open();
    const { text } = await fixture.send({ body: '{"password":"canary-55"' });
    assert.ok(!text.includes('canary'));
    assert.ok(!JSON.stringify(fixture.lines).includes('canary'));
  });

  it('over the limit are refused by their declared length, and the connection goes on', async () => {
    await using fixture = await AgentApiFixture.open();
    const body = JSON.stringify(
      modernMessage('tools/call', { name: 'a', arguments: { text: 'x'.repeat(65_536) } }),
    );
    const tooLarge = await fixture.send({ body });
    assert.deepEqual(
      [tooLarge.status, tooLarge.json.error?.data?.code],
      [413, 'REQUEST_TOO_LARGE'],
    );
    assert.equal((await fixture.modern('tools/list')).status, 200);
  });

  it('at the limit are served, one byte more is not', async () => {
    await using fixture = await AgentApiFixture.open();
    const bare = JSON.stringify(
      modernMessage('tools/call', { name: 'a', arguments: { text: '' } }),
    ).length;
    const call = (length: number) =>
      fixture.modern('tools/call', { name: 'a', arguments: { text: 'x'.repeat(length - bare) } });
    assert.equal((await call(65_536)).status, 200);
    assert.equal((await call(65_537)).status, 413);
  });

  it('without a declared length are refused when they pass the limit, while the client still writes', async () => {
    await using fixture = await AgentApiFixture.open();
    const socket = await openSocket(fixture.port);
    const length = 200_000;
    socket.write(
      head(fixture.port, length).replace(/Content-Length: \d+/, 'Transfer-Encoding: chunked'),
    );
    const chunk = `${(65_000).toString(16)}\r\n${'x'.repeat(65_000)}\r\n`;
    socket.write(chunk + chunk);
    const answer = await readUntil(socket, /REQUEST_TOO_LARGE/);
    assert.match(answer, /^HTTP\/1\.1 413 /);
    // The rest is drained: the same connection serves the next request.
    const body = JSON.stringify(modernMessage('tools/list'));
    socket.write(
      `${chunk}0\r\n\r\n${head(fixture.port, body.length, 'MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n')}${body}`,
    );
    assert.match(await readUntil(socket, /desk__echo/), /^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  it('are not asked for when their declared length is over the limit', async () => {
    await using fixture = await AgentApiFixture.open();
    const socket = await openSocket(fixture.port);
    socket.write(head(fixture.port, 10_000_000, 'Expect: 100-continue\r\n'));
    assert.match(await readUntil(socket, /REQUEST_TOO_LARGE/), /^HTTP\/1\.1 413 /);
    socket.destroy();
  });

  it('are asked for when the client waits to be asked', async () => {
    await using fixture = await AgentApiFixture.open();
    const socket = await openSocket(fixture.port);
    const body = JSON.stringify(modernMessage('tools/list'));
    socket.write(
      head(
        fixture.port,
        body.length,
        'Expect: 100-continue\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n',
      ),
    );
    assert.match(await readUntil(socket, /\r\n\r\n/), /^HTTP\/1\.1 100 /);
    socket.write(body);
    assert.match(await readUntil(socket, /desk__echo/), /HTTP\/1\.1 200 /);
    socket.destroy();
  });

  it('that never end hold up nobody, and are forgotten with their connection', async () => {
    await using fixture = await AgentApiFixture.open();
    const socket = await openSocket(fixture.port);
    socket.write(`${head(fixture.port, 1000)}{`);
    while (fixture.api.inFlight === 0) await new Promise(setImmediate);
    assert.equal((await fixture.modern('tools/list')).status, 200);
    socket.destroy();
    while (fixture.api.inFlight > 0) await new Promise(setImmediate);
    assert.equal(fixture.relay.exchanges.length, 1);
  });
});

describe('paths and methods', () => {
  it('that are not served are 404 and 405, with what is served', async () => {
    await using fixture = await AgentApiFixture.open();
    const rows: readonly [string, string, number][] = [
      ['POST', '/', 404],
      ['POST', '/mcp/', 404],
      ['POST', '/servers/unknown/mcp', 404],
      ['GET', '/livez', 404],
      ['GET', '/metrics', 404],
      ['GET', '/mcp', 405],
      ['PUT', '/mcp', 405],
      ['OPTIONS', '/mcp', 405],
      ['HEAD', '/mcp', 405],
      ['POST', '/status', 405],
    ];
    for (const [method, path, expected] of rows) {
      const { status } = await fixture.send({
        method,
        path,
        ...(method === 'POST' ? { body: {} } : {}),
      });
      assert.equal(status, expected, `${method} ${path}`);
    }
    assert.equal(fixture.lines.length, rows.length);
  });

  it('of an alias that the configuration no longer has are 404 at once', async () => {
    await using fixture = await AgentApiFixture.open();
    assert.equal(
      (await fixture.modern('tools/list', {}, { path: '/servers/desk/mcp' })).status,
      200,
    );
    fixture.relay.aliases = new Set();
    const { status, json } = await fixture.modern('tools/list', {}, { path: '/servers/desk/mcp' });
    assert.deepEqual([status, json.error?.data?.code], [404, 'NOT_FOUND']);
  });

  it('give the status page', async () => {
    await using fixture = await AgentApiFixture.open();
    const { status, json, headers } = await fixture.send({ method: 'GET', path: '/status' });
    assert.equal(status, 200);
    assert.deepEqual(json, { state: 'serving' });
    assert.equal(headers['cache-control'], 'no-store');
  });

  it('give 415 and 406 for media types that cannot work', async () => {
    await using fixture = await AgentApiFixture.open();
    assert.equal(
      (await fixture.send({ body: '{}', headers: { 'Content-Type': 'text/plain' } })).status,
      415,
    );
    assert.equal(
      (await fixture.send({ body: '{}', headers: { Accept: 'text/html' } })).status,
      406,
    );
  });
});

describe('a handler that fails', () => {
  for (const [title, script] of [
    [
      'throws',
      (): never => {
        throw new Error('canary-12 in a message');
      },
    ],
    ['rejects', (): Promise<never> => Promise.reject(new TypeError('canary-12 in a message'))],
    [
      'throws no Error',
      (): never => {
        // oxlint-disable-next-line typescript/only-throw-error -- what a careless library does
        throw 'canary-12';
      },
    ],
  ] as const) {
    it(`because it ${title} costs its own exchange an INTERNAL_ERROR and nobody else anything`, async () => {
      await using fixture = await AgentApiFixture.open();
      fixture.relay.onCall = script;
      const modern = await fixture.modern('tools/call', { name: 'a' });
      assert.deepEqual([modern.status, modern.json.error?.code, modern.json.id], [500, -32603, 1]);
      const session = await fixture.openSession();
      const legacy = await fixture.legacy('tools/call', { name: 'a' }, { session });
      assert.deepEqual([legacy.status, legacy.json.error?.code], [200, -32603]);
      assert.equal(modern.json.error?.data?.callId, fixture.lines[0]?.call_id);
      assert.ok(!(modern.text + legacy.text + JSON.stringify(fixture.lines)).includes('canary'));
      const failed = fixture.lines.filter((line) => line.error_code === 'INTERNAL_ERROR');
      assert.deepEqual(
        failed.map((line) => [line.result_class, line.level]),
        [
          ['internal_error', 'error'],
          ['internal_error', 'error'],
        ],
      );
      fixture.relay.onCall = answerEcho;
      assert.equal((await fixture.modern('tools/call', { name: 'a' })).status, 200);
    });
  }

  it('after its answer changes nothing', async () => {
    await using fixture = await AgentApiFixture.open();
    fixture.relay.onCall = (exchange) => {
      answerEcho(exchange);
      throw new Error('late');
    };
    assert.equal((await fixture.modern('tools/call', { name: 'a' })).status, 200);
    assert.deepEqual(
      fixture.lines.map((line) => line.result_class),
      ['ok'],
    );
  });

  it('in a cancellation is noted; the other listeners run', async () => {
    await using fixture = await AgentApiFixture.open();
    const hangUp = new AbortController();
    const gone = Promise.withResolvers<void>();
    fixture.relay.onCall = (exchange) => {
      exchange.onCancelled(() => {
        throw new Error('first');
      });
      exchange.onCancelled(() => gone.resolve());
      hangUp.abort();
    };
    await assert.rejects(fixture.modern('tools/call', { name: 'a' }, { signal: hangUp.signal }));
    await gone.promise;
    assert.equal(fixture.faults.length, 1);
  });
});

describe('refusing new requests', () => {
  it('is 503 with DRAINING and Retry-After; what is in flight is answered; notifications still count', async () => {
    await using fixture = await AgentApiFixture.open();
    const session = await fixture.openSession();
    const started = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    fixture.relay.onCall = async (exchange) => {
      started.resolve();
      await release.promise;
      answerEcho(exchange);
    };
    const inFlight = fixture.modern('tools/call', { name: 'a', arguments: { text: 'late' } });
    await started.promise;
    fixture.api.refuseNew();
    const refused = await fixture.modern('tools/call', { name: 'a' });
    assert.deepEqual(
      [refused.status, refused.json.error?.data?.code, refused.headers['retry-after']],
      [503, 'DRAINING', '1'],
    );
    assert.equal(
      (await fixture.legacy('notifications/cancelled', { requestId: 1 }, { session })).status,
      202,
    );
    release.resolve();
    assert.deepEqual((await inFlight).json.result?.content, [{ type: 'text', text: 'late' }]);
  });

  it('at the deadline answers what is left: unknown when it was sent, retriable when it was not', async () => {
    await using fixture = await AgentApiFixture.open();
    const both = Promise.withResolvers<void>();
    const cancelled: string[] = [];
    let count = 0;
    fixture.relay.onCall = (exchange) => {
      const { name } = exchange.request.params as { name: string };
      exchange.record.attempts = name === 'sent' ? 1 : 0;
      exchange.onCancelled(() => cancelled.push(name));
      count += 1;
      if (count === 2) both.resolve();
    };
    const calls = ['sent', 'queued'].map((name) => fixture.modern('tools/call', { name }));
    await both.promise;
    fixture.api.interruptAll();
    const codes = (await Promise.all(calls)).map(({ status, json }) => {
      const meta = json.result?._meta as Record<string, { code: string; retriable: boolean }>;
      return [
        status,
        json.result?.isError,
        meta['fairlead.dev/error']?.code,
        meta['fairlead.dev/error']?.retriable,
      ];
    });
    assert.deepEqual(codes, [
      [200, true, 'OUTCOME_UNKNOWN', false],
      [200, true, 'DRAINING', true],
    ]);
    assert.deepEqual(cancelled.sort(), ['queued', 'sent']);
    assert.equal(fixture.lines.filter((line) => line.method === 'tools/call').length, 2);
  });
});

describe('the size limit', () => {
  it('follows the configuration', async () => {
    await using fixture = await AgentApiFixture.open();
    const big = { name: 'a', arguments: { text: 'x'.repeat(100_000) } };
    assert.equal((await fixture.modern('tools/call', big)).status, 413);
    fixture.admission = admissionOf('ana@example.com', 200_000);
    assert.equal((await fixture.modern('tools/call', big)).status, 200);
  });
});
