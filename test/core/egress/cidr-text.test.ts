import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isCidr } from '#core/egress/cidr-text.ts';

test('address ranges of both families are taken', () => {
  for (const text of [
    '10.0.0.0/8',
    '192.168.1.7/32',
    '0.0.0.0/0',
    'fd00::/8',
    '2001:db8::1/128',
    '::/0',
  ]) {
    assert.equal(isCidr(text), true, text);
  }
});

test('what two parsers could read differently is no address range', () => {
  const bad = [
    '',
    '10.0.0.1',
    '10.0.0.0/33',
    '10.0.0.0/08',
    '010.0.0.0/8',
    '10.0.0/8',
    '0x0a.0.0.0/8',
    'fd00::/129',
    'fd00::1',
    'FD00::/8',
  ];
  const hidden = [
    '::ffff:10.0.0.0/104',
    '::ffff:a00:0/104',
    '::10.0.0.0/104',
    'fe80::1%eth0/64',
    '10.0.0.0/8 ',
    '10.0.0.0/8\n',
    '10.0.0.0/-1',
  ];
  for (const text of [...bad, ...hidden]) assert.equal(isCidr(text), false, text);
});
