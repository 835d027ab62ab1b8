// Fairlead's own way through real proxies: the start-up proof on what they really answer, and a
// request in TLS inside a tunnel inside TLS.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import type { EgressProxy } from '#core/egress/egress-proxy.ts';
import { createGuardedPool } from '#core/egress/guarded-pool.ts';
import type { ProofState } from '#core/egress/proxy-proof.ts';
import { ProxyRoute } from '#core/egress/proxy-route.ts';
import type { ProxyIdentity } from '#core/egress/proxy-route.ts';
import { ProxyGate } from '#sidecar/proxy/proxy-gate.ts';
import { exchange } from '#test/support/exchange-outcome.ts';
import { REBIND_ZONE } from '#test/support/proxies/core-dns.ts';
import { allowlists, TOO_WIDE } from '#test/support/proxies/hand-written-allowlists.ts';
import { whyNotInProxyNamespace } from '#test/support/proxies/proxy-layer.ts';
import { BINDINGS, PROXY_KINDS, startProxyWorld } from '#test/support/proxies/proxy-world.ts';
import type { ProxyWorld } from '#test/support/proxies/proxy-world.ts';
import { PROXY_PORTS } from '#test/support/proxies/real-proxies.ts';
import type { ProxyKind } from '#test/support/proxies/real-proxies.ts';

const LISTS = allowlists(Object.values(BINDINGS));
/** Of the wildcard that the first binding may use, so that only its address speaks against it. */
const METADATA_NAME = `metadata.${REBIND_ZONE}`;

describe('the way through real proxies', { skip: whyNotInProxyNamespace() }, () => {
  let world: ProxyWorld;
  before(async () => {
    world = await startProxyWorld({
      script: ({ type }) => (type === 'A' ? ['169.254.169.254'] : []),
    });
  });
  beforeEach(() => world.everywhere.forget());
  after(() => world[Symbol.asyncDispose]());

  function gateTo(kind: ProxyKind, client: string | undefined) {
    const states: ProofState[] = [];
    const identity: ProxyIdentity = {
      caPem: world.authority.certPem,
      client: client === undefined ? undefined : world.clients.issue({ names: [client] }),
    };
    const judged = Promise.withResolvers<ProofState>();
    const gate = new ProxyGate({
      route: new ProxyRoute({
        proxy: { host: 'localhost', port: PROXY_PORTS[kind], isTls: true },
        identity: () => identity,
        clock: systemClock,
        resolve: (_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]),
      }),
      resolvesLocally: true,
      metadataName: METADATA_NAME,
      clock: systemClock,
      onState: (state) => {
        states.push(state);
        judged.resolve(state);
      },
    });
    gate.prove();
    return { gate, judged: judged.promise, [Symbol.dispose]: () => gate.close() };
  }

  /** With a connection of its own. */
  async function get(proxy: EgressProxy, host: string): Promise<number | string> {
    await using pool = createGuardedPool({
      origin: `https://${host}`,
      policy: {
        allowedHosts: ['*.example.com'],
        allowedPorts: [443],
        inClusterExceptions: [],
        development: false,
      },
      connections: 2,
      keepAliveMs: 1_000,
      connectTimeoutMs: 10_000,
      caBundle: world.authority.certPem,
      resolve: (_host, _options, done) => done(null, [{ address: '93.184.215.14', family: 4 }]),
      proxy,
    });
    const outcome = await exchange(pool, { method: 'GET', path: '/', body: null });
    return outcome.kind === 'answer' ? outcome.status : outcome.class.reason;
  }

  for (const kind of PROXY_KINDS) {
    test(`${kind} proves that it refuses metadata addresses, and the name of one (R13)`, async () => {
      using scene = gateTo(kind, BINDINGS.alpha.client);
      assert.equal((await scene.judged).kind, 'proven');
      assert.deepEqual(await world.everywhere.arrivals(), []);
    });

    test(`a request goes through ${kind} to an allowed host, and to no other (R12)`, async () => {
      using scene = gateTo(kind, BINDINGS.alpha.client);
      // More than one tunnel: what is kept of the first must not spoil the next.
      for (let count = 0; count < 3; count += 1)
        assert.equal(await get(scene.gate, 'mcp.example.com'), 200);
      assert.equal(await get(scene.gate, 'unlisted.example.com'), 'proxy-denied');
      assert.equal((await world.everywhere.arrivals()).length, 3);
    });

    test(`without a certificate nothing goes through ${kind} (R12)`, async () => {
      using scene = gateTo(kind, undefined);
      // Squid says nothing to such a client, smokescreen refuses it everything.
      assert.equal((await scene.judged).kind, kind === 'squid' ? 'unproven' : 'proven');
      assert.notEqual(await get(scene.gate, 'mcp.example.com'), 200);
      assert.deepEqual(await world.everywhere.arrivals(), []);
    });

    test(`a ${kind} that is open to all is found out (R13)`, async () => {
      await world.proxies.stop(kind);
      await world.proxies.start(kind, TOO_WIDE);
      using scene = gateTo(kind, BINDINGS.alpha.client);
      assert.equal((await scene.judged).kind, 'lets-through');
      await world.proxies.stop(kind);
      await world.proxies.start(kind, LISTS);
    });
  }
});
