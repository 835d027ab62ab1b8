// One policy, rendered for two proxies: each real proxy lets its clients through to the listed
// hosts on public addresses, and to nothing else. Every address answers here, so whatever a proxy
// lets out arrives and is counted.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';

import { whyNotInProxyNamespace } from '#test/support/proxies/proxy-layer.ts';
import { getThroughTunnel } from '#test/support/proxies/proxy-probe.ts';
import {
  BINDINGS,
  PROXY_KINDS,
  PUBLIC,
  startProxyWorld,
} from '#test/support/proxies/proxy-world.ts';
import type { BindingName, ProxyWorld } from '#test/support/proxies/proxy-world.ts';
import type { ProxyKind } from '#test/support/proxies/real-proxies.ts';
import { createTestAuthority } from '#test/support/test-certificates.ts';
import { literalSpellings, specialAddresses } from '#test/support/proxies/corpus-targets.ts';

const ALPHA_HOSTS = ['mcp.example.com', 'a.tenant.example.net', 'b.c.tenant.example.net'] as const;
/** Of a listed host. Whether a proxy takes them does not matter, only where they lead. */
const OTHER_SPELLINGS = [
  'mcp.example.com.',
  'mcp.example.com..',
  'MCP.Example.COM',
  '[mcp.example.com]',
  'mcp.example.com:443@unlisted.example.com',
  'unlisted.example.com:443@mcp.example.com',
];

const UNLISTED = [
  'unlisted.example.com:443',
  'other.example.org:443',
  'mcp.example.com.unlisted.example.com:443',
  'unlisted.example.com#.tenant.example.net:443',
  'unlisted.example.com?.tenant.example.net:443',
  'unlisted.example.com/.tenant.example.net:443',
  'unlisted.example.com\\.tenant.example.net:443',
  'unlisted.example.com%2f.tenant.example.net:443',
  'unlisted.example.com%00.tenant.example.net:443',
  'unlisted.example.com;.tenant.example.net:443',
  'unlisted.example.com,.tenant.example.net:443',
  'unlisted.example.com:443#.tenant.example.net:443',
  'mcp.example.com@unlisted.example.com:443',
  'mcp.example.com#@unlisted.example.com:443',
  'xmcp.example.com:443',
  'xtenant.example.net:443',
  'example.com:443',
  '[unlisted.example.com]:443',
  '10.9.8.7#.tenant.example.net:443',
  '127.0.0.1\\@mcp.example.com:443',
  'localhost:443',
  'metadata.google.internal:443',
  '*:443',
  '*.tenant.example.net:443',
  '.tenant.example.net:443',
];

const special = specialAddresses();

describe('allowlists in real proxies', { skip: whyNotInProxyNamespace() }, () => {
  let world: ProxyWorld;
  before(async () => {
    world = await startProxyWorld({
      script: ({ name, type }) =>
        special.get(name)?.filter((a) => (type === 'AAAA') === a.includes(':')) ?? [],
    });
  });
  beforeEach(() => world.everywhere.forget());
  after(() => world[Symbol.asyncDispose]());

  async function refuses(
    kind: ProxyKind,
    who: Parameters<ProxyWorld['connect']>[1],
    target: string,
  ): Promise<void> {
    const outcome = await world.connect(kind, who, target);
    if (outcome.kind === 'open') outcome.socket.destroy();
    assert.notEqual(outcome.kind, 'open', `${kind} let ${JSON.stringify(target)} through`);
  }

  test('a connection to any address is seen', async () => {
    for (const address of [
      '10.9.8.7',
      '169.254.169.254',
      'fd00::1',
      '93.184.215.14',
      '240.0.0.1',
    ]) {
      const socket = connect(443, address);
      await once(socket, 'connect');
      socket.destroy();
    }
    assert.equal((await world.everywhere.arrivals()).length, 5);
  });

  for (const kind of PROXY_KINDS) {
    for (const host of ALPHA_HOSTS) {
      test(`${kind} lets a listed host through to its public address: ${host} (R12)`, async () => {
        const outcome = await world.connect(kind, 'alpha', `${host}:443`);
        assert.equal(outcome.kind, 'open');
        if (outcome.kind !== 'open') return;
        const caPem = world.authority.certPem;
        const text = await getThroughTunnel(outcome.socket, { host, caPem });
        assert.match(text, new RegExp(`^HTTP/1\\.1 200 [^]*\\n${host} at `));
        const [arrival, ...more] = await world.everywhere.arrivals();
        assert.deepEqual(more, []);
        assert.ok(PUBLIC[host].some((address) => address === arrival?.address));
      });
    }

    test(`${kind} refuses every other host, whatever it looks like (R12)`, async () => {
      for (const target of UNLISTED) await refuses(kind, 'alpha', target);
      assert.deepEqual(await world.everywhere.arrivals(), []);
    });

    test(`${kind} refuses the name above a wildcard that is not listed itself (R12)`, async () => {
      await refuses(kind, 'alpha', 'tenant.example.net:443');
      await refuses(kind, 'alpha', 'TENANT.example.net.:443');
      assert.deepEqual(await world.everywhere.arrivals(), []);
    });

    test(`${kind} refuses IP addresses in every spelling, public ones too (R13)`, async () => {
      const spellings = literalSpellings();
      assert.ok(spellings.length > 50);
      for (const spelling of spellings) await refuses(kind, 'alpha', `${spelling}:443`);
      assert.deepEqual(await world.everywhere.arrivals(), []);
    });

    test(`${kind} refuses listed names with private and special addresses (R13)`, async () => {
      assert.ok(special.size > 100);
      for (const name of special.keys()) await refuses(kind, 'alpha', `${name}:443`);
      assert.deepEqual(await world.everywhere.arrivals(), []);
    });

    test(`${kind} reaches only the listed host under other spellings of it (R12)`, async () => {
      for (const host of OTHER_SPELLINGS) {
        const outcome = await world.connect(kind, 'alpha', `${host}:443`);
        if (outcome.kind === 'open') outcome.socket.destroy();
      }
      const allowed: readonly string[] = PUBLIC['mcp.example.com'];
      for (const { address } of await world.everywhere.arrivals())
        assert.ok(allowed.includes(address));
    });

    const OTHERS: Readonly<Record<BindingName, string>> = {
      alpha: 'other.example.org',
      beta: 'mcp.example.com',
    };
    test(`${kind} lets no client use the list of another one (R12)`, async () => {
      for (const [name, host] of Object.entries(OTHERS) as [BindingName, string][]) {
        await refuses(kind, name, `${host}:443`);
      }
      assert.deepEqual(await world.everywhere.arrivals(), []);
      const own = await world.connect(kind, 'beta', 'other.example.org:443');
      assert.equal(own.kind, 'open');
      if (own.kind === 'open') own.socket.destroy();
    });

    test(`${kind} knows a client by its whole name, from the right authority only (R12)`, async () => {
      const { client } = BINDINGS.alpha;
      for (const name of [`${client}.x`, `x${client}`, client.slice(0, -1), '*']) {
        await refuses(kind, world.clients.issue({ names: [name] }), 'mcp.example.com:443');
      }
      const foreign = createTestAuthority('clients').issue({ names: [client] });
      const outcome = await world.connect(kind, foreign, 'mcp.example.com:443');
      assert.equal(outcome.kind, 'cut');
      await refuses(kind, undefined, 'mcp.example.com:443');
      assert.deepEqual(await world.everywhere.arrivals(), []);
    });
  }

  test('squid refuses the ports that are not listed (R12)', async () => {
    for (const port of [8443, 80, 22])
      await refuses('squid', 'alpha', `mcp.example.com:${String(port)}`);
    assert.deepEqual(await world.everywhere.arrivals(), []);
  });

  test('smokescreen knows no ports: its pod needs a NetworkPolicy for them', async () => {
    const outcome = await world.connect('smokescreen', 'alpha', 'mcp.example.com:8443');
    assert.equal(outcome.kind, 'open');
    if (outcome.kind === 'open') outcome.socket.destroy();
  });
});
