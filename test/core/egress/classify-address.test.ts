import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { suite, test } from 'node:test';

import fc from 'fast-check';

import { classifyAddress, plainAddress } from '#core/egress/classify-address.ts';
import { ipv6Groups } from '#core/egress/ipv6-groups.ts';

function rangeOf(text: string): string {
  const verdict = classifyAddress(text);
  return verdict.kind === 'public' ? 'public' : verdict.range;
}

suite('classifyAddress', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['93.184.215.14', 'public'],
    ['2606:4700:4700::1111', 'public'],
    ['127.0.0.1', 'loopback'],
    ['::1', 'loopback'],
    ['::', 'unspecified'],
    ['0.0.0.0', 'this-network'],
    ['10.1.2.3', 'private-use'],
    ['100.64.0.1', 'shared-address-space'],
    ['100.100.100.200', 'cloud-metadata'],
    ['168.63.129.16', 'cloud-metadata'],
    ['fd00:ec2::254', 'cloud-metadata'],
    ['169.254.169.254', 'link-local'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'zoned'],
    ['::ffff:8.8.8.8', 'public'],
    ['::ffff:a9fe:a9fe', 'link-local'],
    ['::127.0.0.1', 'ipv4-compatible'],
    ['64:ff9b::808:808', 'nat64'],
    ['2002:808:808::1', '6to4'],
    ['2001:4860::5efe:a00:1', 'isatap'],
    ['4000::1', 'not-global-unicast'],
    ['255.255.255.255', 'broadcast'],
    ['240.0.0.1', 'reserved'],
    ['127.1', 'not-an-address'],
    ['0x7f.1', 'not-an-address'],
    ['2130706433', 'not-an-address'],
    ['01.2.3.4', 'not-an-address'],
    ['1.2.3.4 ', 'not-an-address'],
    ['', 'not-an-address'],
    ['mcp.example.com', 'not-an-address'],
  ];
  for (const [address, range] of rows) {
    test(`${JSON.stringify(address)} is ${range}`, () => assert.equal(rangeOf(address), range));
  }

  test('a mapped address is judged as the IPv4 address that it is, whatever its spelling', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
        const hex = `::ffff:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
        assert.deepEqual(classifyAddress(`::ffff:${address}`), classifyAddress(address));
        assert.deepEqual(classifyAddress(hex), classifyAddress(address));
        assert.equal(plainAddress(hex), address);
      }),
    );
  });

  test('the groups of an IPv6 address are the address: BlockList finds both texts equal', () => {
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        const groups = ipv6Groups(address);
        assert.ok(groups !== undefined && groups.length === 8);
        const list = new BlockList();
        list.addAddress(address, 'ipv6');
        assert.ok(list.check(groups.map((group) => group.toString(16)).join(':'), 'ipv6'));
      }),
    );
  });

  test('no public IPv6 address lies outside 2000::/3', () => {
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        const first = ipv6Groups(address)?.[0] ?? 0;
        if (rangeOf(address) === 'public' && !/^::ffff:/i.test(plainAddress(address))) {
          assert.ok((first >= 0x2000 && first <= 0x3fff) || !plainAddress(address).includes(':'));
        }
      }),
    );
  });
});
