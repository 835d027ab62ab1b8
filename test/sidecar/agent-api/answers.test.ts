import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';

import { ERRORS, FairleadError } from '#core/errors.ts';
import type { ErrorCode } from '#core/errors.ts';
import {
  answerError,
  answerJsonBytes,
  answerResult,
  asFairleadError,
  endStream,
  isAnswerable,
  startStream,
} from '#sidecar/agent-api/answers.ts';
import type { AgentExchange } from '#sidecar/agent-api/exchange.ts';
import { AgentApiFixture, modernMessage } from '#test/support/agent-api-fixture.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

function events(text: string): unknown[] {
  return text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => JSON.parse(event.replaceAll(/^data: /gm, '')));
}

describe('an exchange', () => {
  it('is answered once: every later answer is refused', async () => {
    await using fixture = await AgentApiFixture.open();
    const outcomes: boolean[] = [];
    fixture.relay.onCall = (exchange) => {
      outcomes.push(isAnswerable(exchange));
      outcomes.push(answerResult(exchange, { content: [] }));
      outcomes.push(answerResult(exchange, { content: [] }));
      outcomes.push(answerError(exchange, new FairleadError('SERVER_BUSY')));
      outcomes.push(answerJsonBytes(exchange, 200, '{}'));
      outcomes.push(isAnswerable(exchange));
      assert.throws(() => startStream(exchange), TypeError);
    };
    const { status, json } = await fixture.modern('tools/call', { name: 'a' });
    assert.deepEqual([status, json.result?.content], [200, []]);
    assert.deepEqual(outcomes, [true, true, false, false, false, false]);
    assert.equal(fixture.lines.length, 1);
  });

  it('passes bytes through untouched, with their length', async () => {
    await using fixture = await AgentApiFixture.open();
    const bytes = Buffer.from('{ "jsonrpc":"2.0","id":1,\n"result":{"é":1e2}}');
    fixture.relay.onCall = (exchange) => answerJsonBytes(exchange, 200, bytes);
    const { text, headers } = await fixture.modern('tools/call', { name: 'a' });
    assert.equal(text, bytes.toString());
    assert.equal(headers['content-length'], String(bytes.length));
    assert.equal(fixture.lines[0]?.response_bytes, bytes.length);
  });
});

describe('errors', () => {
  const codes = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code].rpc !== 'none');
  it('take the form that the table gives them, for a modern call', async () => {
    await using fixture = await AgentApiFixture.open();
    for (const code of codes) {
      fixture.relay.onCall = (exchange) =>
        answerError(exchange, new FairleadError(code, { logDetail: 'secret reason' }));
      const { status, json, text } = await fixture.modern('tools/call', { name: 'a' });
      const { rpc, httpStatus } = ERRORS[code];
      assert.ok(!text.includes('secret reason'), code);
      if (rpc === 'tool-error') {
        assert.equal(status, 200, code);
        assert.equal(json.result?.isError, true, code);
        assert.equal(json.result?.resultType, 'complete', code);
        const content = (json.result?.content as { text: string }[] | undefined)?.[0];
        assert.ok(
          content?.text.startsWith(`${code}: `) && content.text.includes(ERRORS[code].next),
          code,
        );
      } else {
        assert.deepEqual(
          [status, json.error?.code, json.error?.data?.code],
          [httpStatus, rpc, code],
        );
      }
    }
    assert.equal(fixture.lines.length, codes.length);
    assert.ok(fixture.lines.every((line) => line.error_detail === 'secret reason'));
  });

  it('about the content stay inside a 200 for legacy agents', async () => {
    await using fixture = await AgentApiFixture.open();
    const session = await fixture.openSession();
    const rows: readonly [ErrorCode, number, number | undefined][] = [
      ['UNKNOWN_TOOL', 200, -32602],
      ['INVALID_PARAMS', 200, -32602],
      ['INTERNAL_ERROR', 200, -32603],
      ['SERVER_BUSY', 200, undefined],
    ];
    for (const [code, expected, rpc] of rows) {
      fixture.relay.onCall = (exchange) => answerError(exchange, new FairleadError(code));
      const { status, json } = await fixture.legacy('tools/call', { name: 'a' }, { session });
      assert.deepEqual([status, json.error?.code], [expected, rpc], code);
      if (rpc === undefined) assert.equal(json.result?.resultType, undefined);
    }
  });

  it('that are tool results have no place in tools/list: there they are -32603 with their code', async () => {
    await using fixture = await AgentApiFixture.open();
    fixture.relay.onList = (exchange) =>
      answerError(exchange, new FairleadError('SERVER_UNAVAILABLE'));
    const { json } = await fixture.modern('tools/list');
    assert.deepEqual(
      [json.error?.code, json.error?.data?.code, json.error?.data?.retriable],
      [-32603, 'SERVER_UNAVAILABLE', true],
    );
  });

  it('of others keep their name and frames only', () => {
    const error = asFairleadError(new SyntaxError('Unexpected token in "canary"'));
    assert.equal(error.code, 'INTERNAL_ERROR');
    assert.match(error.logDetail ?? '', /^SyntaxError at /);
    assert.ok(!error.logDetail?.includes('canary'));
    assert.equal(asFairleadError('text').logDetail, 'string');
  });
});

describe('an event stream', () => {
  it('carries notifications and the final answer, and says how it wants to be handled (R48)', async () => {
    await using fixture = await AgentApiFixture.open();
    fixture.relay.onCall = (exchange) => {
      const stream = startStream(exchange);
      stream.send('{"jsonrpc":"2.0","method":"notifications/progress"}');
      // Line ends are white space in JSON, but would end the event.
      stream.send('{"jsonrpc":"2.0",\r\n"method":"x",\n"a":1}');
      answerResult(exchange, { content: [] });
    };
    const { status, headers, text } = await fixture.modern('tools/call', { name: 'a' });
    assert.equal(status, 200);
    assert.equal(headers['content-type'], 'text/event-stream');
    assert.equal(headers['x-accel-buffering'], 'no');
    assert.equal(headers['cache-control'], 'no-cache');
    const [first, second, last] = events(text) as [object, object, { id: number; result: object }];
    assert.deepEqual(first, { jsonrpc: '2.0', method: 'notifications/progress' });
    assert.deepEqual(second, { jsonrpc: '2.0', method: 'x', a: 1 });
    assert.deepEqual([last.id, 'content' in last.result], [1, true]);
    assert.equal(fixture.lines[0]?.response_bytes, Buffer.byteLength(text));
  });

  it('ends with the error when the call fails after it began', async () => {
    await using fixture = await AgentApiFixture.open();
    fixture.relay.onCall = (exchange) => {
      startStream(exchange).send('{"jsonrpc":"2.0","method":"x"}');
      answerError(exchange, new FairleadError('OUTCOME_UNKNOWN'));
      answerError(exchange, new FairleadError('SERVER_BUSY'));
    };
    const { text } = await fixture.modern('tools/call', { name: 'a' });
    const seen = events(text) as { result?: { isError?: boolean } }[];
    assert.equal(seen.length, 2);
    assert.equal(seen[1]?.result?.isError, true);
    assert.deepEqual(
      fixture.lines.map((line) => line.result_class),
      ['unknown'],
    );
  });

  it('sends its head at once and each event when it happens, those of one tick in one chunk', async () => {
    await using fixture = await AgentApiFixture.open();
    const held = Promise.withResolvers<AgentExchange>();
    fixture.relay.onCall = (exchange) => {
      startStream(exchange);
      held.resolve(exchange);
    };
    const socket = connect(fixture.port, '127.0.0.1');
    const body = JSON.stringify(modernMessage('tools/call', { name: 'a' }));
    socket.write(
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const exchange = await held.promise;
    const [first] = (await once(socket, 'data')) as [Buffer];
    assert.match(first.toString(), /^HTTP\/1\.1 200 OK\r\nContent-Type: text\/event-stream/);
    exchange.stream?.send('1');
    exchange.stream?.send('2');
    const [second] = (await once(socket, 'data')) as [Buffer];
    assert.equal(
      second.toString(),
      '14\r\ndata: 1\n\ndata: 2\n\n\r\n'.replace('14', (20 - 2).toString(16)),
    );
    endStream(exchange);
    const [last] = (await once(socket, 'data')) as [Buffer];
    assert.equal(last.toString(), '0\r\n\r\n');
    socket.destroy();
  });

  it('tells the sender to stop when the reader is slow, and to go on when it has read', async () => {
    await using fixture = await AgentApiFixture.open();
    const outcome = Promise.withResolvers<{ drained: boolean }>();
    const held = Promise.withResolvers<AgentExchange>();
    fixture.relay.onCall = (exchange) => {
      startStream(exchange);
      held.resolve(exchange);
    };
    const socket = connect(fixture.port, '127.0.0.1');
    const body = JSON.stringify(modernMessage('tools/call', { name: 'a' }));
    socket.write(
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    socket.pause();
    const exchange = await held.promise;
    const stream = exchange.stream;
    assert.ok(stream);
    const chunk = JSON.stringify('x'.repeat(32_000));
    let sent = 0;
    while (stream.send(chunk)) {
      sent += 1;
      assert.ok(sent < 10_000, 'the stream never says stop');
      await new Promise(setImmediate);
    }
    let drained = false;
    stream.onDrain(() => {
      drained = true;
      outcome.resolve({ drained });
    });
    for (let tick = 0; tick < 5; tick += 1) await new Promise(setImmediate);
    assert.equal(drained, false);
    socket.resume();
    await outcome.promise;
    endStream(exchange);
    socket.destroy();
  });

  it('is kept alive by comments after silence, and forgotten when it ends', async () => {
    const clock = new FakeClock();
    await using fixture = await AgentApiFixture.open(clock);
    const held = Promise.withResolvers<AgentExchange>();
    fixture.relay.onCall = (exchange) => {
      startStream(exchange);
      held.resolve(exchange);
    };
    const call = fixture.modern('tools/call', { name: 'a' });
    const exchange = await held.promise;
    assert.equal(fixture.api.openStreams, 1);
    const second = 1000;
    clock.advance(8 * second);
    exchange.stream?.send('"busy"');
    clock.advance(7 * second);
    clock.advance(8 * second);
    clock.advance(30 * second);
    answerResult(exchange, { content: [] });
    const { text } = await call;
    const comments = text.match(/^: keep-alive$/gm)?.length ?? 0;
    // 53 s with one event at 8 s: never 15 s of silence, and never a comment beside a busy stream.
    assert.ok(comments >= 3 && comments <= 9, `${comments} comments`);
    assert.equal(events(text).length, 2);
    assert.equal(fixture.api.openStreams, 0);
  });

  it('of an agent that has gone takes everything and writes nothing', async () => {
    await using fixture = await AgentApiFixture.open();
    const hangUp = new AbortController();
    const gone = Promise.withResolvers<AgentExchange>();
    fixture.relay.onCall = (exchange) => {
      startStream(exchange);
      exchange.onCancelled(() => gone.resolve(exchange));
      setImmediate(() => hangUp.abort());
    };
    await assert.rejects(fixture.modern('tools/call', { name: 'a' }, { signal: hangUp.signal }));
    const exchange = await gone.promise;
    assert.equal(exchange.stream?.send('x'), true);
    exchange.stream?.end();
    assert.equal(answerResult(exchange, {}), false);
    const late = Promise.withResolvers<void>();
    exchange.stream?.onDrain(late.resolve);
    await late.promise;
    assert.equal(fixture.api.openStreams, 0);
  });
});
