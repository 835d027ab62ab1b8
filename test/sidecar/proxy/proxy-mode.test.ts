// A sidecar that reaches servers through a proxy and by no other way: what it serves while the proxy
// is good, bad, away, slow to come and changed. What went around the proxy is counted at the servers.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import type { Answer } from '#test/support/agent-api-fixture.ts';
import { assertNoLeak } from '#test/support/canary.ts';
import { closedPort } from '#test/support/egress-pool.ts';
import { FakeConnectProxy, TRICKS } from '#test/support/fake-connect-proxy.ts';
import type { ProxyTrick } from '#test/support/fake-connect-proxy.ts';
import { FakeMcpServer } from '#test/support/fake-mcp-server.ts';
import {
  clientFiles,
  probe,
  routesTo,
  throughProxy,
  tunnelsTo,
} from '#test/support/proxied-sidecar.ts';
import { serverAt, SidecarFixture, toolNames, until } from '#test/support/sidecar-fixture.ts';
import { createTestAuthority } from '#test/support/test-certificates.ts';

const ECHO = { name: 'up__echo', arguments: { a: 1 } };

function errorCode(answer: Answer): string | undefined {
  const meta = answer.json.result?.['_meta'] as Record<string, { code: string }> | undefined;
  return meta?.['fairlead.dev/error']?.code;
}

const listed = async (sidecar: SidecarFixture): Promise<string[]> =>
  toolNames(await sidecar.modern('tools/list'));

/** Real metadata services answer; this proxy lets everybody through to them. */
function lettingMetadataThrough(proxy: FakeConnectProxy): ProxyTrick {
  return (socket, request) => {
    if (/^(169\.254|\[fd00)/.test(request.authority)) socket.write('HTTP/1.1 200 OK\r\n\r\n');
    else proxy.forward(socket, request);
  };
}

suite('a sidecar behind a good proxy', () => {
  test('serves its first agent at once, and every connection to a server is a tunnel (R12)', async () => {
    await using server = await FakeMcpServer.start();
    await using proxy = await FakeConnectProxy.start({ routes: routesTo(server) });
    await using sidecar = await SidecarFixture.open(
      [serverAt('up', server.port)],
      throughProxy(proxy.port),
    );
    assert.deepEqual(await listed(sidecar), ['up__echo']);
    const session = await sidecar.openSession();
    await Promise.all([
      ...Array.from({ length: 8 }, () => sidecar.modern('tools/call', ECHO)),
      sidecar.legacy(session, 'tools/call', ECHO),
    ]);
    assert.equal(errorCode(await sidecar.modern('tools/call', ECHO)), undefined);
    assert.ok(server.connectionCount > 1);
    assert.equal(server.connectionCount, tunnelsTo(proxy, server));
    assert.deepEqual(sidecar.status().proxy, {
      mode: 'Connect',
      resolve: 'Local',
      state: 'proven',
      reason: null,
      certificate: { state: 'none', fault: null },
    });
    assert.equal((await probe(sidecar, '/readyz')).status, 200);
    for (const { head } of proxy.connects) assert.doesNotMatch(head, /authorization|origin/i);
  });

  test('asks for the name that is configured, too', async () => {
    await using server = await FakeMcpServer.start();
    await using proxy = await FakeConnectProxy.start({ routes: routesTo(server) });
    await using sidecar = await SidecarFixture.open(
      [serverAt('up', server.port)],
      throughProxy(proxy.port, { metadataName: 'm.example.com' }),
    );
    await until(() => sidecar.status().proxy?.state === 'proven');
    assert.ok(proxy.asked.includes('m.example.com:443'));
    assert.ok(proxy.asked.includes('[fd00:ec2::254]:80'));
  });

  test('a server that the proxy does not open is denied, and others notice nothing', async () => {
    await using good = await FakeMcpServer.start();
    await using other = await FakeMcpServer.start();
    await using proxy = await FakeConnectProxy.start({ routes: routesTo(good) });
    await using sidecar = await SidecarFixture.open(
      [serverAt('up', good.port), serverAt('other', other.port)],
      throughProxy(proxy.port),
    );
    assert.deepEqual(await listed(sidecar), ['up__echo']);
    const status = sidecar.status().servers.find(({ alias }) => alias === 'other');
    assert.match(status?.reason ?? '', /^EGRESS_DENIED/);
    assert.equal(other.connectionCount, 0);
    const [line] = sidecar.lines('egress').filter(({ alias }) => alias === 'other');
    assert.deepEqual(
      [line?.['verdict'], line?.['stage'], line?.['reason'], line?.['detail']],
      ['deny', 'proxy', 'proxy-denied', '403'],
    );
  });
});

suite('a sidecar behind a proxy that lets metadata addresses through', () => {
  const open: readonly [string, string | undefined, RegExp][] = [
    ['the address', undefined, /^169\.254\.169\.254:80$/],
    ['the address, on the port of TLS alone', undefined, /^169\.254\.169\.254:443$/],
    ['the address of IPv6 alone', undefined, /^\[fd00:ec2::254\]:80$/],
    ['the name alone', 'm.example.com', /^m\.example\.com:443$/],
  ];
  for (const [title, metadataName, pattern] of open)
    test(`${title}: serves no server, and says why (R13)`, async () => {
      await using server = await FakeMcpServer.start();
      await using proxy = await FakeConnectProxy.start({ routes: routesTo(server) });
      proxy.trick = (socket, request) => {
        if (pattern.test(request.authority)) socket.write('HTTP/1.1 200 OK\r\n\r\n');
        else proxy.forward(socket, request);
      };
      await using sidecar = await SidecarFixture.open(
        [serverAt('up', server.port)],
        throughProxy(proxy.port, metadataName === undefined ? {} : { metadataName }),
      );
      await until(() => sidecar.status().proxy?.state === 'lets-through');
      assert.deepEqual(await listed(sidecar), []);
      const [ready, live] = [await probe(sidecar, '/readyz'), await probe(sidecar, '/livez')];
      assert.deepEqual([ready.status, live.status], [503, 200]);
      assert.match(ready.text, /egress proxy lets metadata addresses through/);
      assert.match(sidecar.status().proxy?.reason ?? '', /^EGRESS_PROXY_OPEN/);
      assert.match(sidecar.status().servers[0]?.reason ?? '', /^EGRESS_PROXY_OPEN/);
      const [line] = sidecar.lines('egress-proxy');
      assert.deepEqual([line?.['level'], line?.['error_code']], ['error', 'EGRESS_PROXY_OPEN']);
      assert.deepEqual([server.connectionCount, tunnelsTo(proxy, server)], [0, 0]);
    });

  test('a proxy that comes back so is found out before it carries anything', async () => {
    await using server = await FakeMcpServer.start();
    const first = await FakeConnectProxy.start({ routes: routesTo(server) });
    const { port } = first;
    await using sidecar = await SidecarFixture.open(
      [serverAt('up', server.port)],
      throughProxy(port),
    );
    assert.deepEqual(await listed(sidecar), ['up__echo']);
    const connections = server.connectionCount;
    await first.die();
    assert.equal(errorCode(await sidecar.modern('tools/call', ECHO)), 'EGRESS_PROXY_UNPROVEN');
    await using second = await FakeConnectProxy.start({ routes: routesTo(server), port });
    second.trick = lettingMetadataThrough(second);
    await until(() => sidecar.status().proxy?.state === 'lets-through', 20_000);
    assert.equal(errorCode(await sidecar.modern('tools/call', ECHO)), 'EGRESS_PROXY_OPEN');
    assert.equal((await probe(sidecar, '/readyz')).status, 503);
    assert.deepEqual([server.connectionCount, tunnelsTo(second, server)], [connections, 0]);
    // The tools stay visible, as those of any server that is away.
    assert.deepEqual(await listed(sidecar), ['up__echo']);
    assert.match(sidecar.status().servers[0]?.reason ?? '', /^EGRESS_PROXY_OPEN/);
  });
});

suite('a sidecar whose proxy is away', () => {
  const away: readonly [string, ProxyTrick | undefined][] = [
    ['is not there', undefined],
    ['closes at once', TRICKS.closesAtOnce],
    ['talks nonsense', TRICKS.garbage],
    ['answers 503 to everything', TRICKS.unavailable],
  ];
  for (const [title, trick] of away)
    test(`${title}: is alive and ready, calls no server, and serves when it is back`, async () => {
      await using server = await FakeMcpServer.start();
      const port = await closedPort();
      const bad = trick === undefined ? undefined : await FakeConnectProxy.start({ trick, port });
      await using sidecar = await SidecarFixture.open(
        [serverAt('up', server.port)],
        throughProxy(port),
      );
      await until(() => sidecar.status().proxy?.state === 'unproven');
      assert.deepEqual(await listed(sidecar), []);
      assert.deepEqual(
        [(await probe(sidecar, '/livez')).status, (await probe(sidecar, '/readyz')).status],
        [200, 200],
      );
      assert.match(sidecar.status().proxy?.reason ?? '', /^EGRESS_PROXY_UNPROVEN/);
      assert.match(sidecar.status().servers[0]?.reason ?? '', /^EGRESS_PROXY_UNPROVEN/);
      assert.equal(sidecar.lines('egress-proxy')[0]?.['error_code'], 'EGRESS_PROXY_UNPROVEN');
      await bad?.die();
      await using good = await FakeConnectProxy.start({ routes: routesTo(server), port });
      await until(() => sidecar.status().servers[0]?.state === 'ok', 20_000);
      assert.deepEqual(await listed(sidecar), ['up__echo']);
      assert.equal(server.connectionCount, tunnelsTo(good, server));
    });

  test('a silent proxy holds up neither the start nor other answers', async () => {
    await using server = await FakeMcpServer.start();
    await using proxy = await FakeConnectProxy.start({ trick: TRICKS.silence });
    await using sidecar = await SidecarFixture.open(
      [serverAt('up', server.port)],
      throughProxy(proxy.port),
    );
    assert.equal(sidecar.status().proxy?.state, 'pending');
    assert.equal((await probe(sidecar, '/readyz')).status, 200);
    assert.equal((await sidecar.modern('server/discover')).status, 200);
    assert.equal(server.connectionCount, 0);
  });
});

suite('a proxy that dies', () => {
  test('in the middle of a write: unknown outcome, sent once, and the next call goes through the next proxy', async () => {
    let calls = 0;
    await using server = await FakeMcpServer.start({
      onCall: () => {
        calls += 1;
        return calls === 1 ? new Promise(() => {}) : { content: [] };
      },
    });
    const first = await FakeConnectProxy.start({ routes: routesTo(server) });
    const { port } = first;
    await using sidecar = await SidecarFixture.open(
      [serverAt('up', server.port)],
      throughProxy(port),
    );
    assert.deepEqual(await listed(sidecar), ['up__echo']);
    const call = sidecar.modern('tools/call', ECHO);
    await until(() => calls === 1);
    await first.die();
    assert.equal(errorCode(await call), 'OUTCOME_UNKNOWN');
    assert.equal(calls, 1);
    assert.equal(errorCode(await sidecar.modern('tools/call', ECHO)), 'EGRESS_PROXY_UNPROVEN');
    assert.equal(calls, 1);
    await using second = await FakeConnectProxy.start({ routes: routesTo(server), port });
    await until(() => sidecar.status().proxy?.state === 'proven', 20_000);
    assert.equal(errorCode(await sidecar.modern('tools/call', ECHO)), undefined);
    assert.equal(calls, 2);
    assert.equal(server.connectionCount, tunnelsTo(first, server) + tunnelsTo(second, server));
  });
});

suite('a configuration that changes the way', () => {
  test('moves all connections, and ends those of the way before', async () => {
    await using server = await FakeMcpServer.start();
    await using proxy = await FakeConnectProxy.start({ routes: routesTo(server) });
    await using other = await FakeConnectProxy.start({ routes: routesTo(server) });
    const servers = [serverAt('up', server.port)];
    await using sidecar = await SidecarFixture.open(servers);
    const works = async (): Promise<boolean> =>
      errorCode(await sidecar.modern('tools/call', ECHO)) === undefined;
    await listed(sidecar);
    assert.ok(await works());
    assert.equal(sidecar.status().proxy, null);
    const direct = server.connectionCount;

    await sidecar.reconfigure(servers, throughProxy(proxy.port));
    assert.ok(await works());
    await until(() => server.openSockets === proxyTunnels(proxy));
    assert.equal(server.connectionCount, direct + tunnelsTo(proxy, server));

    await sidecar.reconfigure(servers, throughProxy(other.port));
    assert.ok(await works());
    await until(() => proxy.openConnections === 0);
    const proxied = tunnelsTo(proxy, server) + tunnelsTo(other, server);
    assert.equal(server.connectionCount, direct + proxied);

    await sidecar.reconfigure(servers, { proxy: { mode: 'Direct' } });
    assert.ok(await works());
    await until(() => other.openConnections === 0);
    assert.equal(proxied, tunnelsTo(proxy, server) + tunnelsTo(other, server));
    assert.equal(sidecar.status().proxy, null);
  });

  test('lets a call in flight end on the way that it went', async () => {
    const answer = Promise.withResolvers<object>();
    await using server = await FakeMcpServer.start({ onCall: () => answer.promise });
    await using proxy = await FakeConnectProxy.start({ routes: routesTo(server) });
    const servers = [serverAt('up', server.port)];
    await using sidecar = await SidecarFixture.open(servers, throughProxy(proxy.port));
    await listed(sidecar);
    const call = sidecar.modern('tools/call', ECHO);
    await server.waitForRequest(({ message }) => message?.method === 'tools/call');
    await sidecar.reconfigure(servers);
    answer.resolve({ content: [] });
    assert.equal(errorCode(await call), undefined);
    await until(() => proxy.openConnections === 0);
  });

  test('with the same proxy keeps connections and proof', async () => {
    await using server = await FakeMcpServer.start();
    await using proxy = await FakeConnectProxy.start({ routes: routesTo(server) });
    const servers = [serverAt('up', server.port)];
    await using sidecar = await SidecarFixture.open(servers, throughProxy(proxy.port));
    await listed(sidecar);
    const before = proxy.connections;
    await sidecar.reconfigure(servers, {
      ...throughProxy(proxy.port),
      telemetry: { logLevel: 'warn' },
    });
    await sidecar.modern('tools/call', ECHO);
    assert.equal(proxy.connections, before);
  });
});

function proxyTunnels(proxy: FakeConnectProxy): number {
  // Each tunnel is a connection in and one out.
  return proxy.openConnections / 2;
}

suite('two sidecars behind one https proxy', () => {
  const proxyAuthority = createTestAuthority('Proxy CA');
  const clientAuthority = createTestAuthority('Client CA');

  async function openScene() {
    const server = await FakeMcpServer.start();
    const proxy = await FakeConnectProxy.start({
      routes: routesTo(server),
      tls: {
        server: proxyAuthority.issue({ names: ['127.0.0.1'] }),
        clientCaPem: clientAuthority.certPem,
      },
    });
    const directories: string[] = [];
    return {
      server,
      proxy,
      directory: async (): Promise<string> => {
        const made = await mkdtemp(join(tmpdir(), 'fairlead-client-'));
        directories.push(made);
        return made;
      },
      show: async (directory: string, name: string) => {
        const files = clientFiles(clientAuthority, name, proxyAuthority.certPem);
        for (const [file, text] of Object.entries(files))
          await writeFile(join(directory, file), text);
        return files;
      },
      open: (proxyClientDirectory: string | undefined) =>
        SidecarFixture.open(
          [serverAt('up', server.port)],
          throughProxy(proxy.port, { isTls: true }),
          { proxyClientDirectory },
        ),
      async [Symbol.asyncDispose]() {
        await proxy[Symbol.asyncDispose]();
        await server[Symbol.asyncDispose]();
        for (const made of directories) await rm(made, { recursive: true });
      },
    };
  }

  test('each shows its own certificate, and nothing of a key is told (R121)', async () => {
    await using scene = await openScene();
    const [one, two] = [await scene.directory(), await scene.directory()];
    const files = [await scene.show(one, 'binding-one'), await scene.show(two, 'binding-two')];
    await using first = await scene.open(one);
    await using second = await scene.open(two);
    const answers: string[] = [];
    for (const sidecar of [first, second]) {
      assert.deepEqual(await listed(sidecar), ['up__echo']);
      answers.push((await sidecar.modern('tools/call', ECHO)).text);
      answers.push(JSON.stringify(sidecar.status()), JSON.stringify(sidecar.allLines()));
    }
    assert.deepEqual(
      new Set(scene.proxy.connects.map(({ client }) => client)),
      new Set(['binding-one', 'binding-two']),
    );
    assert.deepEqual(first.status().proxy?.certificate, { state: 'ready', fault: null });
    const keys = files.flatMap((pair) => pair['tls.key'].split('\n').slice(1, 3));
    assertNoLeak(
      answers.join(''),
      keys.map((value) => ({ name: 'a key', value })),
    );
    assert.equal(scene.server.connectionCount, tunnelsTo(scene.proxy, scene.server));
  });

  test('a certificate that comes late is waited for, and one that changes is taken', async () => {
    await using scene = await openScene();
    const directory = await scene.directory();
    await using sidecar = await scene.open(directory);
    await until(() => sidecar.status().proxy?.state === 'unproven');
    const { proxy } = sidecar.status();
    assert.match(proxy?.reason ?? '', /proxy-certificate/);
    assert.deepEqual(proxy?.certificate, { state: 'pending', fault: 'missing' });
    assert.equal((await probe(sidecar, '/livez')).status, 200);
    assert.equal(scene.proxy.connections, 0);
    await scene.show(directory, 'binding-one');
    await until(() => sidecar.status().servers[0]?.state === 'ok', 20_000);
    assert.deepEqual(
      new Set(scene.proxy.connects.map(({ client }) => client)),
      new Set(['binding-one']),
    );
    await scene.show(directory, 'binding-two');
    await until(() => scene.proxy.connects.some(({ client }) => client === 'binding-two'), 20_000);
  });

  test('without a certificate the proxy says nothing, so no server is called', async () => {
    await using scene = await openScene();
    await using sidecar = await scene.open(undefined);
    await until(() => sidecar.status().proxy?.state === 'unproven');
    assert.deepEqual(await listed(sidecar), []);
    assert.equal(scene.server.connectionCount, 0);
  });
});
