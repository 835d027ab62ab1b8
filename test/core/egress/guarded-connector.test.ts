import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { suite, test } from 'node:test';
import { inspect } from 'node:util';

import type { ResolveHost } from '#core/egress/pinned-lookup.ts';
import {
  assertFailed,
  authority,
  goodCertificate,
  HOST,
  openPool,
  policyFor,
  resolvesTo,
} from '#test/support/egress-pool.ts';
import { exchange } from '#test/support/exchange-outcome.ts';
import { openFakeRemote } from '#test/support/fake-remote.ts';
import { createSelfSigned, createTestAuthority } from '#test/support/test-certificates.ts';

/** Counts the bytes of its one connection until that ends. */
async function openSilent(): Promise<{ server: Server; received: Promise<number>; port: number }> {
  const bytes = Promise.withResolvers<number>();
  const server = createServer((socket) => {
    let count = 0;
    socket.on('data', (chunk) => (count += chunk.length)).on('error', () => {});
    socket.on('close', () => bytes.resolve(count));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, received: bytes.promise, port: (server.address() as AddressInfo).port };
}

suite('guarded connector and certificates', () => {
  test('a request reaches the resolved address under its own name, verified by the CA bundle (R17)', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    const { pool, decisions } = openPool(remote.port);
    await using _ = pool;
    const outcome = await exchange(pool, { body: '{"a":1}' });
    assert.deepEqual(outcome.kind === 'answer' && [outcome.status, outcome.body], [200, 'ok']);
    assert.deepEqual(remote.requests, [
      {
        method: 'POST',
        url: '/mcp',
        host: `${HOST}:${remote.port}`,
        servername: HOST,
        body: '{"a":1}',
      },
    ]);
    const [{ durationMs = -1, lookupMs = -1, ...decision } = {}] = decisions;
    assert.ok(lookupMs >= 0 && durationMs >= lookupMs, `${lookupMs} of ${durationMs}`);
    assert.deepEqual(
      [decision, decisions.length],
      [
        {
          verdict: 'allow',
          stage: 'peer',
          reason: 'ok',
          host: HOST,
          port: remote.port,
          address: '127.0.0.1',
        },
        1,
      ],
    );
  });

  const badCertificates = [
    {
      title: 'for another name',
      reason: 'tls-name',
      make: () => authority.issue({ names: ['other.test'] }),
    },
    {
      title: 'that expired',
      reason: 'tls-expired',
      make: () =>
        authority.issue({
          names: [HOST],
          notBefore: new Date('2020-01-01'),
          notAfter: new Date('2020-02-01'),
        }),
    },
    {
      title: 'that is not valid yet',
      reason: 'tls-expired',
      make: () =>
        authority.issue({
          names: [HOST],
          notBefore: new Date('2045-01-01'),
          notAfter: new Date('2045-02-01'),
        }),
    },
    {
      title: 'signed by itself',
      reason: 'tls-untrusted',
      make: () => createSelfSigned({ names: [HOST] }),
    },
    {
      title: 'of a foreign CA',
      reason: 'tls-untrusted',
      make: () => createTestAuthority('Other CA').issue({ names: [HOST] }),
    },
  ];
  for (const { title, reason, make } of badCertificates) {
    test(`a certificate ${title} ends the connection before anything is sent`, async () => {
      await using remote = await openFakeRemote({ certificate: make() });
      const { pool, decisions } = openPool(remote.port);
      await using _ = pool;
      assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', reason);
      assert.equal(remote.requests.length, 0);
      assert.deepEqual(
        decisions.map(({ verdict, stage, reason: word }) => [verdict, stage, word]),
        [['failed', 'connect', reason]],
      );
    });
  }

  test('without its CA bundle the test server is not trusted', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    const { pool } = openPool(remote.port, { caBundle: undefined });
    await using _ = pool;
    assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', 'tls-untrusted');
    assert.equal(remote.requests.length, 0);
  });

  test('a CA bundle without a certificate is named as the cause', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    const bad = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
    const { pool } = openPool(remote.port, { caBundle: bad });
    await using _ = pool;
    assertFailed(await exchange(pool), 'CA_BUNDLE_INVALID', 'ca-bundle');
    assert.equal(remote.connections, 0);
  });

  test('no switch in the environment turns the verification off', async () => {
    await using remote = await openFakeRemote({
      certificate: createSelfSigned({ names: [HOST] }),
    });
    const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    try {
      const { pool } = openPool(remote.port);
      await using _ = pool;
      assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', 'tls-untrusted');
    } finally {
      if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
      else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
    }
    assert.equal(remote.requests.length, 0);
  });

  test('a denied peer gets no byte, not even the beginning of a TLS handshake', async () => {
    const { server, received, port } = await openSilent();
    const exceptions = [{ host: HOST, cidrs: ['127.0.0.0/8'], ports: [port] }];
    const { pool } = openPool(port, {
      policy: policyFor(port, { inClusterExceptions: exceptions }),
      resolve: (_host, _options, callback) => {
        callback(null, [{ address: '127.0.0.1', family: 4 }]);
        exceptions.splice(0, 1, { host: HOST, cidrs: ['10.0.0.0/8'], ports: [port] });
      },
    });
    await using _ = pool;
    assertFailed(await exchange(pool), 'EGRESS_DENIED', 'outside-exception');
    assert.equal(await received, 0);
    server.close();
  });

  test('a server that speaks no TLS is reported as a failed handshake', async () => {
    await using remote = await openFakeRemote();
    const { pool } = openPool(remote.port);
    await using _ = pool;
    assertFailed(await exchange(pool), 'SERVER_UNAVAILABLE', 'tls-failed');
    assert.equal(remote.requests.length, 0);
  });
});

suite('guarded connector and addresses', () => {
  test('one denied address among good ones denies all, and nothing is dialled', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    const { pool, decisions } = openPool(remote.port, {
      resolve: resolvesTo('127.0.0.1', '10.9.8.7'),
    });
    await using _ = pool;
    const error = assertFailed(await exchange(pool), 'EGRESS_DENIED', 'outside-exception');
    assert.equal(remote.connections, 0);
    assert.equal(decisions[0]?.address, '10.9.8.7');
    assert.doesNotMatch(
      `${error.message} ${error.logDetail} ${inspect(error.cause)}`,
      /10\.9\.8\.7/,
    );
  });

  test('a name that moves after the check is denied on the next connection (R13)', async () => {
    await using remote = await openFakeRemote({
      certificate: goodCertificate,
      answer: (_request, response) => response.setHeader('connection', 'close').end('ok'),
    });
    let lookups = 0;
    const rebinding: ResolveHost = (host, options, callback) => {
      lookups += 1;
      resolvesTo(lookups === 1 ? '127.0.0.1' : '169.254.169.254')(host, options, callback);
    };
    const { pool } = openPool(remote.port, { resolve: rebinding });
    await using _ = pool;
    assert.equal((await exchange(pool)).kind, 'answer');
    assertFailed(await exchange(pool), 'EGRESS_DENIED', 'special-address');
    assert.equal(lookups, 2);
    assert.equal(remote.requests.length, 1);
  });

  test('the peer of the open socket is judged before a byte is written', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    const exceptions = [{ host: HOST, cidrs: ['127.0.0.0/8'], ports: [remote.port] }];
    const { pool, decisions } = openPool(remote.port, {
      policy: policyFor(remote.port, { inClusterExceptions: exceptions }),
      // The answer is judged good inside the callback; then the ground shifts.
      resolve: (_host, _options, callback) => {
        callback(null, [{ address: '127.0.0.1', family: 4 }]);
        exceptions.splice(0, 1, { host: HOST, cidrs: ['10.0.0.0/8'], ports: [remote.port] });
      },
    });
    await using _ = pool;
    assertFailed(await exchange(pool), 'EGRESS_DENIED', 'outside-exception');
    assert.deepEqual([remote.connections, remote.requests.length], [1, 0]);
    assert.deepEqual(
      decisions.map(({ verdict, stage }) => [verdict, stage]),
      [['deny', 'peer']],
    );
  });
});

suite('guarded connector and spellings of the host', () => {
  const spellings = [
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '017700000001',
    '[::ffff:127.0.0.1]',
    '[::1]',
    '0.0.0.0',
  ];
  for (const spelling of spellings) {
    test(`the literal ${spelling} is refused, listed or not`, async () => {
      await using remote = await openFakeRemote({ certificate: goodCertificate });
      for (const allowIpLiterals of [false, true]) {
        const policy = policyFor(remote.port, {
          allowedHosts: ['*'],
          allowedPorts: [remote.port],
          inClusterExceptions: [],
          allowIpLiterals,
        });
        const { pool } = openPool(remote.port, {
          origin: `https://${spelling}:${remote.port}`,
          policy,
        });
        await using _ = pool;
        assertFailed(
          await exchange(pool),
          'EGRESS_DENIED',
          allowIpLiterals ? 'special-address' : 'ip-literal',
        );
      }
      assert.equal(remote.connections, 0);
    });
  }

  test('public names are looked up absolute, names of exceptions with the search list', async () => {
    const asked: string[] = [];
    const resolve: ResolveHost = (host, _options, callback) => {
      asked.push(host);
      callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), []);
    };
    const exception = openPool(8443, { resolve }).pool;
    const named = openPool(443, {
      resolve,
      origin: `https://${HOST}`,
      policy: policyFor(443, { inClusterExceptions: [] }),
    }).pool;
    await using _ = exception;
    await using __ = named;
    assertFailed(await exchange(exception), 'SERVER_UNAVAILABLE', 'dns-not-found');
    assertFailed(await exchange(named), 'SERVER_UNAVAILABLE', 'dns-not-found');
    assert.deepEqual(asked, [HOST, `${HOST}.`]);
  });

  test('a proxy in the environment is not used', async () => {
    await using remote = await openFakeRemote({ certificate: goodCertificate });
    await using proxy = await openFakeRemote();
    const before = { ...process.env };
    Object.assign(process.env, {
      HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`,
      https_proxy: `http://127.0.0.1:${proxy.port}`,
    });
    try {
      const { pool } = openPool(remote.port);
      await using _ = pool;
      assert.equal((await exchange(pool)).kind, 'answer');
    } finally {
      process.env = before;
    }
    assert.equal(proxy.connections, 0);
  });

  test('the resolver of the system serves localhost in development', async () => {
    await using remote = await openFakeRemote();
    const { pool, decisions } = openPool(remote.port, {
      origin: `http://localhost:${remote.port}`,
      policy: {
        allowedHosts: ['localhost'],
        allowedPorts: [],
        inClusterExceptions: [],
        development: true,
      },
      resolve: undefined,
    });
    await using _ = pool;
    assert.equal((await exchange(pool)).kind, 'answer');
    assert.match(String(decisions[0]?.address), /^(127\.|::1$)/);
  });

  test('plain http reaches a loopback literal only in development', async () => {
    await using remote = await openFakeRemote();
    const origin = `http://127.0.0.1:${remote.port}`;
    const rules = {
      allowedHosts: ['127.0.0.1'],
      allowedPorts: [remote.port],
      inClusterExceptions: [],
    };
    const production = openPool(remote.port, {
      origin,
      policy: { ...rules, development: false },
    }).pool;
    const development = openPool(remote.port, {
      origin,
      policy: { ...rules, development: true },
    }).pool;
    await using _ = production;
    await using __ = development;
    assertFailed(await exchange(production), 'EGRESS_DENIED', 'plain-http');
    assert.equal(remote.connections, 0);
    assert.equal((await exchange(development)).kind, 'answer');
  });
});
