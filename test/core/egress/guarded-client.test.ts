import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { suite, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

import type { ExchangeOutcome, ExchangeRequest } from '#core/egress/guarded-client.ts';
import { openNamedRemote } from '#test/support/named-remote.ts';

const START = 'https://mcp.example.com/start';

function get(url = START, headers: Record<string, string> = {}): ExchangeRequest {
  return { kind: 'discovery', url: new URL(url), method: 'GET', headers };
}

function redirect(response: ServerResponse, location: string | string[], status = 302): void {
  response.setHeader('location', location).writeHead(status).end();
}

/** What matters of an outcome, in one line. */
function brief(outcome: ExchangeOutcome): string {
  switch (outcome.kind) {
    case 'response':
      return `${outcome.status} from ${outcome.url.href} after ${outcome.hops}`;
    case 'denied':
      return `denied ${outcome.stage} ${outcome.reason} at ${outcome.hop}`;
    case 'failed':
      return `failed ${outcome.code} ${outcome.reason} at ${outcome.hop}`;
    default:
      return outcome satisfies never;
  }
}

async function untilClosed(remote: { readonly openConnections: number }): Promise<void> {
  for (let turn = 0; turn < 1_000 && remote.openConnections > 0; turn++) await delay(5);
  assert.equal(remote.openConnections, 0);
}

suite('the guarded client', () => {
  test('asks as itself and for nothing compressed, and gives back what came (R15)', async () => {
    await using remote = await openNamedRemote((_request, response) => response.end('{}'));
    const outcome = await remote.client.exchange(get(START, { accept: 'application/json' }));
    assert.equal(brief(outcome), `200 from ${START} after 0`);
    assert.deepEqual(remote.headers[0]?.toSorted(), ['accept', 'connection', 'host', 'user-agent']);
  });

  for (const name of ['host', 'origin', 'content-length', 'accept-encoding', 'proxy-authorization'])
    test(`lets nobody set ${name}`, async () => {
      await using remote = await openNamedRemote((_request, response) => response.end());
      await assert.rejects(remote.client.exchange(get(START, { [name]: 'x' })), TypeError);
      assert.deepEqual(remote.seen, []);
    });

  test('follows a redirect of discovery to a listed host, with headers that say nothing (R11) (R14)', async () => {
    await using remote = await openNamedRemote((_request, response, url) =>
      url === START ? redirect(response, 'https://auth.example.com/end') : response.end('{}'),
    );
    const outcome = await remote.client.exchange(
      get(START, { accept: 'application/json', 'x-api-key': 'K', cookie: 'c=1' }),
    );
    assert.equal(brief(outcome), '200 from https://auth.example.com/end after 1');
    assert.deepEqual(remote.seen, [`GET ${START}`, 'GET https://auth.example.com/end']);
    const hops = remote.decisions.filter(({ stage }) => stage === 'redirect');
    const followed = { verdict: 'allow', stage: 'redirect', reason: 'ok', hop: 1 };
    assert.deepEqual(hops, [{ ...followed, host: 'auth.example.com', port: 443 }]);
    const [first = [], second = []] = remote.headers;
    assert.ok(['x-api-key', 'cookie'].every((name) => first.includes(name)));
    assert.deepEqual(second.toSorted(), ['accept', 'connection', 'host', 'user-agent']);
  });

  for (const name of ['authorization', 'mcp-session-id']) {
    test(`takes no ${name} to another origin, and does not go there without it either (R14)`, async () => {
      await using remote = await openNamedRemote((_request, response) =>
        redirect(response, 'https://auth.example.com/end'),
      );
      const outcome = await remote.client.exchange(get(START, { [name]: 'T' }));
      assert.equal(outcome.kind === 'denied' && outcome.reason, 'redirect-other-origin');
      assert.deepEqual(remote.seen, [`GET ${START}`]);
    });
  }

  test('keeps what it left out when a redirect leads back', async () => {
    await using remote = await openNamedRemote((_request, response, url) => {
      if (url === START) redirect(response, 'https://auth.example.com/a');
      else if (url.endsWith('/a')) redirect(response, 'https://mcp.example.com/b');
      else response.end('{}');
    });
    await remote.client.exchange(get(START, { 'x-api-key': 'K' }));
    assert.equal(remote.headers.length, 3);
    assert.ok(remote.headers[2]?.includes('x-api-key') === false);
  });

  const refused: readonly [string, string | string[], string][] = [
    ['itself', START, 'redirect-loop'],
    ['a file', 'file:///etc/passwd', 'redirect-location'],
    ['a URL with a password', 'https://user:pw@mcp.example.com/', 'user-information'],
    ['two places', ['/a', '/b'], 'redirect-location'],
    ['another host', 'https://evil.org/', 'host-not-listed'],
    ['a metadata address', 'https://169.254.169.254/latest/', 'ip-literal'],
    ['plain http', 'http://mcp.example.com/x', 'redirect-downgrade'],
  ];
  for (const [what, location, reason] of refused)
    test(`asks nothing more of a server that redirects to ${what} (R14)`, async () => {
      await using remote = await openNamedRemote((_request, response) =>
        redirect(response, location),
      );
      const outcome = await remote.client.exchange(get());
      assert.equal(brief(outcome), `denied redirect ${reason} at 1`);
      assert.deepEqual(remote.seen, [`GET ${START}`]);
      const denied = remote.decisions.filter(({ verdict }) => verdict === 'deny');
      assert.deepEqual(
        denied.map((decision) => [decision.stage, decision.reason]),
        [['redirect', reason]],
      );
      assert.doesNotMatch(JSON.stringify(remote.decisions), /pw|passwd|latest/);
    });

  test('goes three hops of an endless chain', async () => {
    await using remote = await openNamedRemote((request, response) =>
      redirect(response, `${request.url ?? ''}x`),
    );
    assert.equal(brief(await remote.client.exchange(get())), 'denied redirect redirect-limit at 4');
    assert.equal(remote.seen.length, 4);
  });

  test('never sends a secret twice, nor along', async () => {
    await using remote = await openNamedRemote((_request, response) =>
      redirect(response, '/other', 307),
    );
    for (const kind of ['token', 'registration', 'revocation'] as const) {
      const outcome = await remote.client.exchange({
        ...get('https://auth.example.com/token'),
        kind,
        method: 'POST',
        body: 'secret',
      });
      assert.equal(brief(outcome), 'denied redirect redirect-not-followed at 1');
    }
    assert.equal(remote.seen.length, 3);
  });

  test('asks nothing at a first URL that is not allowed', async () => {
    await using remote = await openNamedRemote((_request, response) => response.end());
    for (const url of [
      'https://10.0.0.5/',
      'file:///etc/passwd',
      'https://evil.org/',
      'javascript:x',
    ])
      assert.match(brief(await remote.client.exchange(get(url))), /^denied url-policy .* at 0$/);
    assert.deepEqual(remote.seen, []);
  });
});

suite('limits of the guarded client', () => {
  const MiB = 1_048_576;

  test('100 MB that are announced are not read', async () => {
    await using remote = await openNamedRemote((_request, response) => {
      response.writeHead(200, { 'content-length': 100 * MiB });
      response.write(Buffer.alloc(1_024));
    });
    const outcome = await remote.client.exchange(get());
    assert.equal(brief(outcome), 'failed RESPONSE_TOO_LARGE too-large at 0');
    await untilClosed(remote);
  });

  test('100 MB that are not announced are read up to the cap', async () => {
    let written = 0;
    await using remote = await openNamedRemote((_request, response) => {
      const pour = (): void => {
        while (written < 100 * MiB && !response.destroyed && response.write(Buffer.alloc(65_536)))
          written += 65_536;
      };
      response.on('drain', pour);
      pour();
    });
    const outcome = await remote.client.exchange(get());
    assert.equal(brief(outcome), 'failed RESPONSE_TOO_LARGE too-large at 0');
    await untilClosed(remote);
    assert.ok(written < 32 * MiB, String(written));
  });

  test('a body of exactly the cap is read', async () => {
    await using remote = await openNamedRemote((_request, response) =>
      response.end(Buffer.alloc(MiB)),
    );
    const outcome = await remote.client.exchange(get());
    assert.equal(outcome.kind === 'response' && outcome.body.length, MiB);
  });

  for (const coding of ['gzip', 'br', 'zstd', 'identity, gzip', 'x'])
    test(`a body in ${coding} is not decoded`, async () => {
      await using remote = await openNamedRemote((_request, response) =>
        response.writeHead(200, { 'content-encoding': coding }).end(gzipSync(Buffer.alloc(MiB))),
      );
      const outcome = await remote.client.exchange(get());
      assert.equal(brief(outcome), 'failed UPSTREAM_PROTOCOL_ERROR content-coding at 0');
      await untilClosed(remote);
    });

  test('one deadline covers headers and body that trickle, and all hops', async () => {
    await using remote = await openNamedRemote((_request, response, url) => {
      if (url === START) {
        redirect(response, '/slow');
        return;
      }
      response.writeHead(200);
      const drip = setInterval(() => response.write(' '), 10);
      response.on('close', () => clearInterval(drip));
    });
    const outcome = await remote.client.exchange(get(), { deadlineMs: 200 });
    assert.equal(brief(outcome), 'failed CALL_TIMED_OUT deadline at 1');
    await untilClosed(remote);
  });

  test('a header that never ends is cut off', async () => {
    await using remote = await openNamedRemote((_request, response) => {
      response.writeHead(200, { 'x-long': 'x'.repeat(40_000) }).end('{}');
    });
    assert.match(brief(await remote.client.exchange(get())), /^failed UPSTREAM_PROTOCOL_ERROR /);
    await untilClosed(remote);
  });

  test('who gives up gets an answer at once, and leaves no socket', async () => {
    await using remote = await openNamedRemote(() => {});
    const controller = new AbortController();
    const exchange = remote.client.exchange(get(), { signal: controller.signal });
    while (remote.seen.length === 0) await delay(2);
    controller.abort();
    const outcome = await exchange;
    assert.equal(brief(outcome), 'failed OUTCOME_UNKNOWN cancelled at 0');
    await untilClosed(remote);
    const again = await remote.client.exchange(get(), { signal: controller.signal });
    assert.equal(again.kind === 'failed' && again.wasSent, false);
    assert.equal(remote.seen.length, 1);
  });

  test('a server that ends without an answer is unknown, and does not stop the next request', async () => {
    let isFirst = true;
    await using remote = await openNamedRemote((request, response) => {
      if (isFirst) request.socket.destroy();
      else response.end('{}');
      isFirst = false;
    });
    const outcome = await remote.client.exchange(get());
    assert.ok(outcome.kind === 'failed' && outcome.wasSent, brief(outcome));
    assert.equal(brief(await remote.client.exchange(get())), `200 from ${START} after 0`);
  });
});
