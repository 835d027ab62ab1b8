// The guard without a proxy, with the system's real resolver, a real CoreDNS behind it and real
// sockets: no seam of the guard is used. A name that rebinds must not lead to an address that was
// not judged, and one unfit address in an answer is enough to refuse it.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import type { EgressPolicy } from '#core/egress/egress-policy.ts';
import { createGuardedClient } from '#core/egress/guarded-client.ts';
import { REBIND_ZONE } from '#test/support/proxies/core-dns.ts';
import { specialAddresses } from '#test/support/proxies/corpus-targets.ts';
import { whyNotInProxyNamespace } from '#test/support/proxies/proxy-layer.ts';
import { startProxyWorld } from '#test/support/proxies/proxy-world.ts';
import type { ProxyWorld } from '#test/support/proxies/proxy-world.ts';
import { rebindScript, unchecked } from '#test/support/proxies/rebind-script.ts';

const NAMES = 40;
const ROUNDS = 4;
const POLICY: EgressPolicy = {
  allowedHosts: [`*.${REBIND_ZONE}`],
  allowedPorts: [443],
  inClusterExceptions: [],
  development: false,
};
const special = specialAddresses();

describe('the guard on a real resolver', { skip: whyNotInProxyNamespace() }, () => {
  let world: ProxyWorld;
  before(async () => {
    world = await startProxyWorld({
      script: (question) =>
        special
          .get(question.name)
          ?.filter((address) => (question.type === 'AAAA') === address.includes(':')) ??
        rebindScript(question),
    });
  });
  beforeEach(() => world.everywhere.forget());
  after(() => world[Symbol.asyncDispose]());

  /** Each with a client, and so a connection, of its own. */
  async function ask(name: string): Promise<string> {
    await using client = createGuardedClient({
      policy: POLICY,
      caBundle: world.authority.certPem,
      clock: systemClock,
      connectTimeoutMs: 10_000,
    });
    const url = new URL(`https://${name}/`);
    const outcome = await client.exchange({ kind: 'discovery', url, method: 'GET', headers: {} });
    return outcome.kind === 'response' ? String(outcome.status) : outcome.reason;
  }

  for (const pattern of ['next', 'turns', 'next6']) {
    test(`no name that rebinds is followed to an address that was not judged: ${pattern} (R13)`, async () => {
      const seen = new Set<string>();
      for (let round = 0; round < ROUNDS; round += 1) {
        const names = Array.from({ length: NAMES }, (_, index) => `${pattern}-${String(index)}`);
        for (const said of await Promise.all(names.map((name) => ask(`${name}.${REBIND_ZONE}`)))) {
          seen.add(said);
        }
      }
      assert.deepEqual([...seen].toSorted(), ['200', 'special-address']);
      assert.deepEqual(unchecked(await world.everywhere.arrivals()), []);
    });
  }

  for (const pattern of ['both', 'behind', 'families']) {
    test(`one private address in an answer refuses the name: ${pattern} (R13)`, async () => {
      for (let index = 0; index < NAMES; index += 1) {
        assert.equal(await ask(`${pattern}-${String(index)}.${REBIND_ZONE}`), 'special-address');
      }
      assert.deepEqual(await world.everywhere.arrivals(), []);
    });
  }

  test('names with private and special addresses are refused (R13)', async () => {
    for (const [name, [address]] of special) {
      assert.equal(await ask(name), 'special-address', address);
    }
    assert.deepEqual(await world.everywhere.arrivals(), []);
  });
});
