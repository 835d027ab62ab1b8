// What real proxies do while they change: lists that grow and shrink under open tunnels, a proxy
// that goes away and comes back, and one that was set up to let everything through.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';

import { allowlists, TOO_WIDE } from '#test/support/proxies/hand-written-allowlists.ts';
import { whyNotInProxyNamespace } from '#test/support/proxies/proxy-layer.ts';
import { getThroughTunnel } from '#test/support/proxies/proxy-probe.ts';
import { BINDINGS, PROXY_KINDS, startProxyWorld } from '#test/support/proxies/proxy-world.ts';
import type { ProxyWorld } from '#test/support/proxies/proxy-world.ts';

const METADATA = '169.254.169.254';
const LISTS = allowlists(Object.values(BINDINGS));

describe('real proxies that change', { skip: whyNotInProxyNamespace() }, () => {
  let world: ProxyWorld;
  before(async () => {
    world = await startProxyWorld();
  });
  beforeEach(() => world.everywhere.forget());
  after(() => world[Symbol.asyncDispose]());

  test('squid takes changed lists without losing a tunnel, and a removed host keeps its own (R12)', async () => {
    const open = await world.connect('squid', 'alpha', 'mcp.example.com:443');
    assert.equal(open.kind, 'open');
    const { alpha, beta } = BINDINGS;
    await world.proxies.reloadSquid(
      allowlists([{ ...alpha, hosts: ['unlisted.example.com'] }, beta]),
    );
    const added = await world.connect('squid', 'alpha', 'unlisted.example.com:443');
    assert.equal(added.kind, 'open');
    if (added.kind === 'open') added.socket.destroy();
    const removed = await world.connect('squid', 'alpha', 'mcp.example.com:443');
    assert.deepEqual(removed, { kind: 'refused', status: 403 });
    if (open.kind === 'open') {
      const caPem = world.authority.certPem;
      const text = await getThroughTunnel(open.socket, { host: 'mcp.example.com', caPem });
      assert.match(text, /mcp\.example\.com at /);
    }
    await world.proxies.reloadSquid(LISTS);
  });

  for (const kind of PROXY_KINDS) {
    test(`${kind} that is away answers nobody, and all as before when it is back (R12)`, async () => {
      await world.proxies.stop(kind);
      assert.equal((await world.connect(kind, 'alpha', 'mcp.example.com:443')).kind, 'cut');
      await world.proxies.start(kind, LISTS);
      const outcome = await world.connect(kind, 'alpha', 'mcp.example.com:443');
      assert.equal(outcome.kind, 'open');
      if (outcome.kind === 'open') outcome.socket.destroy();
    });

    test(`a ${kind} that lets the metadata address through is seen to do so`, async () => {
      await world.proxies.stop(kind);
      await world.proxies.start(kind, TOO_WIDE);
      const outcome = await world.connect(kind, 'alpha', `${METADATA}:80`);
      assert.equal(outcome.kind, 'open');
      if (outcome.kind === 'open') outcome.socket.destroy();
      const arrived = await world.everywhere.arrivals();
      assert.deepEqual(arrived, [{ address: METADATA, port: 80 }]);
      await world.proxies.stop(kind);
      await world.proxies.start(kind, LISTS);
      const refused = await world.connect(kind, 'alpha', `${METADATA}:80`);
      assert.equal(refused.kind, 'refused');
    });
  }
});
