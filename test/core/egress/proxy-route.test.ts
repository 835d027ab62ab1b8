import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { connect } from 'node:net';
import { suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { systemClock } from '#core/clock.ts';
import type { ProxyRefusal } from '#core/egress/egress-proxy.ts';
import { createGuardedClient } from '#core/egress/guarded-client.ts';
import type { ResolveHost } from '#core/egress/pinned-lookup.ts';
import type { ProxyIdentity } from '#core/egress/proxy-route.ts';
import { USER_AGENT } from '#core/version.ts';
import {
  assertFailed,
  authority,
  closedPort,
  goodCertificate,
  HOST,
  policyFor,
  resolvesTo,
} from '#test/support/egress-pool.ts';
import { exchange } from '#test/support/exchange-outcome.ts';
import { FakeConnectProxy, TRICKS } from '#test/support/fake-connect-proxy.ts';
import { openFakeRemote } from '#test/support/fake-remote.ts';
import { openProxiedPool, PUBLIC_ADDRESS, routeTo } from '#test/support/proxied-pool.ts';
import { until } from '#test/support/sidecar-fixture.ts';
import { createTestAuthority } from '#test/support/test-certificates.ts';

const proxyAuthority = createTestAuthority('Proxy CA');
const clientAuthority = createTestAuthority('Client CA');
const PROXY_HOST = 'proxy.test';
const proxyTls = {
  server: proxyAuthority.issue({ names: [PROXY_HOST] }),
  clientCaPem: clientAuthority.certPem,
};
const identity: ProxyIdentity = {
  caPem: proxyAuthority.certPem,
  client: clientAuthority.issue({ names: ['binding-7'] }),
};

/** A target behind a proxy that knows it. */
async function openScene() {
  const remote = await openFakeRemote({ certificate: goodCertificate });
  const name = `${HOST}:${String(remote.port)}`;
  const proxy = await FakeConnectProxy.start({ routes: { [name]: remote.port } });
  return {
    remote,
    proxy,
    name,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await remote[Symbol.asyncDispose]();
    },
  };
}

suite('through a proxy', () => {
  test('a request goes inside one tunnel, in TLS that proves the name that was judged (R15, R17)', async () => {
    await using scene = await openScene();
    const { remote, proxy, name } = scene;
    const { pool, decisions } = openProxiedPool(remote.port, routeTo(proxy.port));
    await using _ = pool;
    const outcome = await exchange(pool, { body: '{"a":1}' });
    assert.deepEqual(outcome.kind === 'answer' && [outcome.status, outcome.body], [200, 'ok']);
    const [{ servername, host, body } = {}] = remote.requests;
    assert.deepEqual([servername, host, body], [HOST, name, '{"a":1}']);
    assert.deepEqual(
      proxy.connects.map(({ head }) => head),
      [`CONNECT ${name} HTTP/1.1\r\nHost: ${name}\r\nUser-Agent: ${USER_AGENT}\r\n\r\n`],
    );
    assert.deepEqual(
      decisions.map(({ verdict, stage, reason, address }) => [verdict, stage, reason, address]),
      [['allow', 'proxy', 'ok', '127.0.0.1']],
    );
  });

  test('a tunnel is kept and used again', async () => {
    await using scene = await openScene();
    const { remote, proxy } = scene;
    const { pool } = openProxiedPool(remote.port, routeTo(proxy.port));
    await using _ = pool;
    for (let count = 0; count < 3; count += 1) await exchange(pool);
    assert.deepEqual([remote.requests.length, proxy.connects.length], [3, 1]);
  });

  test('exchanges besides calls take the same way', async () => {
    await using scene = await openScene();
    const { remote, proxy } = scene;
    const { pool } = openProxiedPool(remote.port, routeTo(proxy.port));
    await using _ = pool;
    const { statusCode, body } = await pool.request({ method: 'DELETE', path: '/mcp' });
    await body.dump();
    assert.deepEqual([statusCode, remote.connections, proxy.connects.length], [200, 1, 1]);
  });

  test('discovery takes the same way', async () => {
    await using scene = await openScene();
    const { remote, proxy, name } = scene;
    await using client = createGuardedClient({
      policy: policyFor(remote.port, { allowedPorts: [remote.port], inClusterExceptions: [] }),
      caBundle: authority.certPem,
      clock: systemClock,
      connectTimeoutMs: 5_000,
      resolve: resolvesTo(PUBLIC_ADDRESS),
      proxy: routeTo(proxy.port),
    });
    const outcome = await client.exchange({
      kind: 'discovery',
      method: 'GET',
      url: new URL(`https://${name}/.well-known/x`),
      headers: {},
    });
    assert.equal(outcome.kind, 'response');
    assert.deepEqual([remote.connections, proxy.asked], [1, [name]]);
  });

  test('sockets are back at zero when the pool ends', async () => {
    await using scene = await openScene();
    const { remote, proxy } = scene;
    const { pool } = openProxiedPool(remote.port, routeTo(proxy.port));
    await Promise.all(Array.from({ length: 4 }, () => exchange(pool)));
    await pool.destroy();
    await until(() => proxy.openConnections === 0 && remote.openConnections === 0);
  });
});

suite('what is judged here in proxy mode', () => {
  const denied: readonly [string, ResolveHost, string, string][] = [
    ['a private address', resolvesTo('10.9.8.7'), 'EGRESS_DENIED', 'special-address'],
    [
      'one private address among public ones',
      resolvesTo(PUBLIC_ADDRESS, '169.254.169.254'),
      'EGRESS_DENIED',
      'special-address',
    ],
    ['no address', resolvesTo(), 'SERVER_UNAVAILABLE', 'no-address'],
    [
      'a name that does not exist',
      (_host, _options, done) => done(Object.assign(new Error('x'), { code: 'ENOTFOUND' }), []),
      'SERVER_UNAVAILABLE',
      'dns-not-found',
    ],
    [
      'a resolver that fails',
      (_host, _options, done) => done(Object.assign(new Error('x'), { code: 'EAI_AGAIN' }), []),
      'SERVER_UNAVAILABLE',
      'dns-failed',
    ],
  ];
  for (const [title, resolve, code, reason] of denied)
    test(`${title} asks the proxy for nothing (R12, R13)`, async () => {
      await using scene = await openScene();
      const { remote, proxy } = scene;
      const { pool } = openProxiedPool(remote.port, routeTo(proxy.port), { resolve });
      await using _ = pool;
      assertFailed(await exchange(pool), code, reason);
      assert.deepEqual([proxy.connections, remote.connections], [0, 0]);
    });

  test('where the proxy alone resolves, nothing is resolved here', async () => {
    await using scene = await openScene();
    const { remote, proxy } = scene;
    let lookups = 0;
    const { pool } = openProxiedPool(remote.port, routeTo(proxy.port, { resolvesLocally: false }), {
      resolve: (...question) => {
        lookups += 1;
        resolvesTo('10.9.8.7')(...question);
      },
    });
    await using _ = pool;
    assert.equal((await exchange(pool)).kind, 'answer');
    assert.equal(lookups, 0);
  });

  test('the URL and its literals, whoever resolves (R12)', async () => {
    await using scene = await openScene();
    const { remote, proxy } = scene;
    const route = routeTo(proxy.port, { resolvesLocally: false });
    for (const [origin, reason] of [
      ['https://elsewhere.test', 'host-not-listed'],
      [`https://${HOST}:1`, 'port-not-listed'],
      [`https://169.254.169.254:${String(remote.port)}`, 'ip-literal'],
      [`http://${HOST}:${String(remote.port)}`, 'plain-http'],
    ] as const) {
      const { pool } = openProxiedPool(remote.port, route, { origin });
      await using _ = pool;
      assertFailed(await exchange(pool), 'EGRESS_DENIED', reason);
    }
    const { pool } = openProxiedPool(remote.port, route, {
      origin: `https://169.254.169.254:${String(remote.port)}`,
      policy: policyFor(remote.port, {
        allowedHosts: ['*'],
        allowedPorts: [remote.port],
        allowIpLiterals: true,
      }),
    });
    await using _ = pool;
    assertFailed(await exchange(pool), 'EGRESS_DENIED', 'special-address');
    assert.equal(proxy.connections, 0);
  });

  test('a target behind the tunnel that cannot prove its name gets nothing', async () => {
    await using scene = await openScene();
    const { remote, proxy } = scene;
    proxy.routes.set(`other.test:${String(remote.port)}`, remote.port);
    const { pool, decisions } = openProxiedPool(remote.port, routeTo(proxy.port), {
      origin: `https://other.test:${String(remote.port)}`,
    });
    await using _ = pool;
    assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', 'tls-name');
    assert.equal(remote.requests.length, 0);
    assert.deepEqual(
      decisions.map(({ verdict, stage, reason }) => [verdict, stage, reason]),
      [['failed', 'connect', 'tls-name']],
    );
  });

  test('a proxy that may no longer be used gets no request, not even in a kept tunnel', async () => {
    await using scene = await openScene();
    const { remote, proxy } = scene;
    const lock: { refusal?: ProxyRefusal } = {};
    const { pool, decisions } = openProxiedPool(
      remote.port,
      routeTo(proxy.port, { refusal: () => lock.refusal }),
    );
    await using _ = pool;
    assert.equal((await exchange(pool)).kind, 'answer');
    lock.refusal = {
      kind: 'closed',
      verdict: 'deny',
      code: 'EGRESS_DENIED',
      reason: 'proxy-lets-through',
    };
    assertFailed(await exchange(pool), 'EGRESS_DENIED', 'proxy-lets-through');
    await assert.rejects(pool.request({ method: 'DELETE', path: '/mcp' }));
    assert.deepEqual([remote.requests.length, decisions.at(-1)?.stage], [1, 'proxy']);
  });
});

suite('a proxy that refuses or fails', () => {
  const tricks: readonly [keyof typeof TRICKS, string, string][] = [
    ['forbidden', 'EGRESS_DENIED', 'proxy-denied'],
    ['authenticate', 'EGRESS_DENIED', 'proxy-denied'],
    ['badGateway', 'SERVER_UNAVAILABLE', 'proxy-error'],
    ['unavailable', 'SERVER_UNAVAILABLE', 'proxy-error'],
    ['garbage', 'SERVER_UNAVAILABLE', 'proxy-answer'],
    ['chunked', 'SERVER_UNAVAILABLE', 'proxy-answer'],
    ['headerFlood', 'SERVER_UNAVAILABLE', 'proxy-answer'],
    ['closesAtOnce', 'SERVER_UNAVAILABLE', 'proxy-gone'],
    ['resets', 'SERVER_UNAVAILABLE', 'proxy-gone'],
    ['opensThenResets', 'SERVER_UNAVAILABLE', 'connect-failed'],
  ];
  for (const [trick, code, reason] of tricks)
    test(`${trick}: ${code}, provably not sent, asked once`, async () => {
      await using scene = await openScene();
      const { remote, proxy } = scene;
      proxy.trick = TRICKS[trick];
      const { pool } = openProxiedPool(remote.port, routeTo(proxy.port));
      await using _ = pool;
      assertFailed(await exchange(pool), code, reason);
      assert.deepEqual([proxy.connects.length, remote.connections], [1, 0]);
      await until(() => proxy.openConnections === 0);
    });

  test('silence ends within the connect timeout, with a word of its own', async () => {
    await using scene = await openScene();
    const { remote, proxy } = scene;
    proxy.trick = TRICKS.silence;
    const { pool, decisions } = openProxiedPool(remote.port, routeTo(proxy.port), {
      connectTimeoutMs: 200,
    });
    await using _ = pool;
    assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', 'proxy-timeout');
    assert.equal(decisions[0]?.stage, 'proxy');
    await until(() => proxy.openConnections === 0);
  });

  test('a proxy that is away is no reason to go around it', async () => {
    await using scene = await openScene();
    const { remote } = scene;
    const { pool, decisions } = openProxiedPool(remote.port, routeTo(await closedPort()));
    await using _ = pool;
    assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', 'connect-refused');
    assert.equal(remote.connections, 0);
    assert.deepEqual(
      decisions.map(({ verdict, stage, reason, host, address }) => [
        verdict,
        stage,
        reason,
        host,
        address,
      ]),
      [['failed', 'proxy', 'connect-refused', HOST, '127.0.0.1']],
    );
  });

  test('a call whose tunnel breaks after it was sent has an unknown outcome', async () => {
    const remote = await openFakeRemote({ certificate: goodCertificate, answer: () => {} });
    await using _remote = remote;
    await using proxy = await FakeConnectProxy.start({
      routes: { [`${HOST}:${String(remote.port)}`]: remote.port },
    });
    const { pool } = openProxiedPool(remote.port, routeTo(proxy.port));
    await using _ = pool;
    const outcome = exchange(pool);
    await until(() => remote.requests.length === 1);
    await proxy.die();
    const ended = await outcome;
    assert.ok(ended.kind === 'error' && ended.wasStarted);
    assert.deepEqual([ended.class.kind, ended.class.code], ['unknown', 'OUTCOME_UNKNOWN']);
  });

  test('is never at an address where no proxy is (R13)', async () => {
    await using scene = await openScene();
    const { remote } = scene;
    const dialled: string[] = [];
    const route = routeTo(3128, {
      proxy: { host: PROXY_HOST, port: 3128, isTls: false },
      resolve: resolvesTo('169.254.169.254'),
      openSocket: ({ address }) => {
        dialled.push(address);
        return connect(1, '127.0.0.1');
      },
    });
    const { pool, decisions } = openProxiedPool(remote.port, route);
    await using _ = pool;
    assertFailed(await exchange(pool), 'EGRESS_DENIED', 'special-address');
    assert.deepEqual(dialled, []);
    assert.deepEqual([decisions[0]?.stage, decisions[0]?.address], ['proxy', '169.254.169.254']);
  });
});

suite('TLS to the proxy', () => {
  const overTls = (port: number, shown: ProxyIdentity | 'pending' = identity) =>
    routeTo(port, {
      proxy: { host: PROXY_HOST, port, isTls: true },
      identity: () => shown,
      resolve: resolvesTo('127.0.0.1'),
    });

  async function openTlsScene(tls = proxyTls) {
    const remote = await openFakeRemote({ certificate: goodCertificate });
    const name = `${HOST}:${String(remote.port)}`;
    const proxy = await FakeConnectProxy.start({ routes: { [name]: remote.port }, tls });
    return {
      remote,
      proxy,
      async [Symbol.asyncDispose]() {
        await proxy[Symbol.asyncDispose]();
        await remote[Symbol.asyncDispose]();
      },
    };
  }

  test('shows the certificate of the binding, and carries TLS to the target inside', async () => {
    await using scene = await openTlsScene();
    const { remote, proxy } = scene;
    const { pool } = openProxiedPool(remote.port, overTls(proxy.port));
    const body = 'x'.repeat(300_000);
    const outcome = await exchange(pool, { body });
    assert.ok(outcome.kind === 'answer');
    assert.equal(remote.requests[0]?.body, body);
    assert.equal(remote.requests[0]?.servername, HOST);
    assert.equal(proxy.connects[0]?.client, 'binding-7');
    await pool.destroy();
    await until(() => proxy.openConnections === 0 && remote.openConnections === 0);
  });

  const wrong: readonly [string, ProxyIdentity, string][] = [
    [
      'a proxy of another authority is not trusted',
      { ...identity, caPem: createTestAuthority().certPem },
      'tls-untrusted',
    ],
    ['nor one of no authority we know', { ...identity, caPem: undefined }, 'tls-untrusted'],
  ];
  for (const [title, shown, reason] of wrong)
    test(title, async () => {
      await using scene = await openTlsScene();
      const { remote, proxy } = scene;
      const { pool } = openProxiedPool(remote.port, overTls(proxy.port, shown));
      await using _ = pool;
      assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', reason);
      assert.deepEqual([proxy.connects.length, remote.connections], [0, 0]);
    });

  test('a proxy must prove its own name', async () => {
    await using scene = await openTlsScene({
      ...proxyTls,
      server: proxyAuthority.issue({ names: ['other.test'] }),
    });
    const { remote, proxy } = scene;
    const { pool } = openProxiedPool(remote.port, overTls(proxy.port));
    await using _ = pool;
    assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', 'tls-name');
    assert.equal(proxy.connects.length, 0);
  });

  test('the bundle of a server vouches for no proxy, and that of the proxy for no server', async () => {
    await using scene = await openTlsScene();
    const { remote, proxy } = scene;
    const { pool } = openProxiedPool(remote.port, overTls(proxy.port), {
      caBundle: proxyAuthority.certPem,
    });
    await using _ = pool;
    assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', 'tls-untrusted');
    assert.deepEqual([proxy.connects.length, remote.requests.length], [1, 0]);
  });

  test('a certificate that the proxy does not know ends before a request', async () => {
    await using scene = await openTlsScene();
    const { remote, proxy } = scene;
    const shown = { ...identity, client: createTestAuthority().issue({ names: ['binding-7'] }) };
    const { pool } = openProxiedPool(remote.port, overTls(proxy.port, shown));
    await using _ = pool;
    const outcome = await exchange(pool);
    assert.ok(outcome.kind === 'error' && !outcome.wasStarted);
    assert.deepEqual([outcome.class.kind, outcome.class.code], ['not-sent', 'SERVER_UNAVAILABLE']);
    assert.equal(remote.connections, 0);
  });

  for (const [title, shown] of [
    ['that is not there yet', 'pending'],
    ['that is none', { ...identity, client: { certPem: 'x', keyPem: 'y' } }],
    ['whose authority is none', { ...identity, caPem: 'x' }],
  ] as const)
    test(`with a certificate ${title} nothing is dialled`, async () => {
      await using scene = await openTlsScene();
      const { remote, proxy } = scene;
      const { pool } = openProxiedPool(remote.port, overTls(proxy.port, shown));
      await using _ = pool;
      assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', 'proxy-certificate');
      assert.equal(proxy.connections, 0);
    });

  test('is shaken hands anew for each tunnel, as Squid wants it of clients with certificates', async () => {
    await using scene = await openTlsScene();
    const { remote, proxy } = scene;
    const route = overTls(proxy.port);
    for (let count = 0; count < 3; count += 1) {
      const { pool } = openProxiedPool(remote.port, route);
      assert.equal((await exchange(pool)).kind, 'answer');
      await pool.destroy();
    }
    assert.deepEqual(
      proxy.connects.map(({ isResumed }) => isResumed),
      [false, false, false],
    );
  });

  test('a changed certificate counts from the next tunnel on', async () => {
    await using scene = await openTlsScene();
    const { remote, proxy } = scene;
    let shown = identity;
    const route = routeTo(proxy.port, {
      proxy: { host: PROXY_HOST, port: proxy.port, isTls: true },
      identity: () => shown,
      resolve: resolvesTo('127.0.0.1'),
    });
    const first = openProxiedPool(remote.port, route);
    await exchange(first.pool);
    await first.pool.destroy();
    shown = { ...identity, client: clientAuthority.issue({ names: ['binding-8'] }) };
    const second = openProxiedPool(remote.port, route);
    await exchange(second.pool);
    await second.pool.destroy();
    assert.deepEqual(
      proxy.connects.map(({ client }) => client),
      ['binding-7', 'binding-8'],
    );
  });
});

suite('proxy variables of the environment', () => {
  const NAMES = [
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'ALL_PROXY',
    'http_proxy',
    'https_proxy',
    'all_proxy',
  ];

  test('are ignored, whatever Node is told to make of them (R12)', async () => {
    await using other = await FakeConnectProxy.start();
    const url = `http://127.0.0.1:${String(other.port)}`;
    const script = fileURLToPath(new URL('../../support/env-request.ts', import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [script], {
      env: {
        ...process.env,
        ...Object.fromEntries(NAMES.map((name) => [name, url])),
        NODE_USE_ENV_PROXY: '1',
      },
    });
    assert.equal(stdout, 'answer 200\n');
    assert.equal(other.connections, 0);
  });
});
