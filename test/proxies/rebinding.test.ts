// A name on the list whose owner answers with a public address first and a private one next, each
// with a time to live of 0 seconds: between a proxy's check and its connection, and later, no
// address may come in that was not checked. Counted is what arrives at other addresses.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { REBIND_ZONE } from '#test/support/proxies/core-dns.ts';
import { whyNotInProxyNamespace } from '#test/support/proxies/proxy-layer.ts';
import { PROXY_KINDS, startProxyWorld } from '#test/support/proxies/proxy-world.ts';
import type { ProxyWorld } from '#test/support/proxies/proxy-world.ts';
import type { ProxyKind } from '#test/support/proxies/real-proxies.ts';
import { rebindScript, unchecked } from '#test/support/proxies/rebind-script.ts';

const NAMES = 100;

describe('rebinding against real proxies', { skip: whyNotInProxyNamespace() }, () => {
  let world: ProxyWorld;
  before(async () => {
    world = await startProxyWorld({ script: rebindScript });
  });
  beforeEach(() => world.everywhere.forget());
  after(() => world[Symbol.asyncDispose]());

  async function isOpen(kind: ProxyKind, name: string): Promise<boolean> {
    const outcome = await world.connect(kind, 'alpha', `${name}.${REBIND_ZONE}:443`);
    if (outcome.kind === 'open') outcome.socket.destroy();
    return outcome.kind === 'open';
  }

  async function assertOnlyPublicArrivals(): Promise<void> {
    assert.deepEqual(unchecked(await world.everywhere.arrivals()), []);
  }

  async function goesPrivate(kind: ProxyKind, pattern: string): Promise<void> {
    const name = `${pattern}-0-later-${kind}`;
    assert.equal(await isOpen(kind, name), true);
    // Squid keeps an answer some seconds, whatever its time to live.
    while (await isOpen(kind, name)) await systemClock.sleep(100);
    const asked = world.dns.askedFor(`${name}.${REBIND_ZONE}`);
    while (world.dns.askedFor(`${name}.${REBIND_ZONE}`) < asked + 2) {
      assert.equal(await isOpen(kind, name), false);
      await systemClock.sleep(100);
    }
  }

  for (const kind of PROXY_KINDS) {
    for (const pattern of ['next', 'turns', 'next6']) {
      test(`${kind} connects to no address that it did not check: ${pattern} (R13)`, async () => {
        const names = Array.from(
          { length: NAMES },
          (_, index) => `${pattern}-${String(index)}-${kind}`,
        );
        const first = await Promise.all(names.map((name) => isOpen(kind, name)));
        for (let round = 0; round < 3; round += 1) {
          await Promise.all(names.map((name) => isOpen(kind, name)));
        }
        assert.ok(first.includes(true), 'the public answer never counted');
        await assertOnlyPublicArrivals();
      });
    }

    for (const pattern of ['both', 'behind', 'families']) {
      test(`${kind} never connects to the private one of two answers: ${pattern} (R13)`, async () => {
        for (let index = 0; index < NAMES; index += 1) {
          await isOpen(kind, `${pattern}-${String(index)}-${kind}`);
        }
        await assertOnlyPublicArrivals();
      });
    }

    test(`${kind} refuses a name that went private once it asks again (R13)`, async () => {
      await Promise.all(['next', 'next6'].map((pattern) => goesPrivate(kind, pattern)));
      await assertOnlyPublicArrivals();
    });
  }

  test('squid refuses a name as soon as one of its addresses is private (R13)', async () => {
    for (const pattern of ['both', 'behind', 'families']) {
      assert.equal(await isOpen('squid', `${pattern}-1-all`), false);
    }
    assert.deepEqual(await world.everywhere.arrivals(), []);
  });
});
