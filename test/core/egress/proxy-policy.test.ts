import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { decideAddress } from '#core/egress/decide-egress.ts';
import { queryName } from '#core/egress/pinned-lookup.ts';
import { parseProxyUrl, proxyPolicy } from '#core/egress/proxy-policy.ts';

suite('the URL of a proxy', () => {
  const good: readonly [string, ReturnType<typeof parseProxyUrl>][] = [
    ['http://proxy.egress.svc:3128', { host: 'proxy.egress.svc', port: 3128, isTls: false }],
    ['https://proxy.example.com:443', { host: 'proxy.example.com', port: 443, isTls: true }],
    ['http://10.0.0.7:80', { host: '10.0.0.7', port: 80, isTls: false }],
    ['https://[fd00::7]:3129', { host: 'fd00::7', port: 3129, isTls: true }],
  ];
  for (const [text, expected] of good)
    test(`${text} is one`, () => assert.deepEqual(parseProxyUrl(text), expected));

  const bad = [
    '',
    'proxy:3128',
    'proxy.example.com:3128',
    'http://proxy.example.com',
    'https://proxy.example.com',
    'http://proxy.example.com:3128/',
    'http://proxy.example.com:3128/x',
    'http://proxy.example.com:3128?x',
    'http://user:password@proxy.example.com:3128',
    'http://proxy.example.com.:3128',
    'http://PROXY.example.com:3128',
    'http://0x7f.1:3128',
    'http://2130706433:3128',
    'http://proxy.example.com:0',
    'http://proxy.example.com:03128',
    'http://proxy.example.com:99999',
    'http://proxy%2eexample.com:3128',
    'http:proxy.example.com:3128',
    ' http://proxy.example.com:3128',
    'socks5://proxy.example.com:1080',
  ];
  for (const text of bad)
    test(`${JSON.stringify(text)} is none`, () => assert.equal(parseProxyUrl(text), undefined));
});

suite('the addresses of a proxy', () => {
  const policy = proxyPolicy({ host: 'proxy.test', port: 3128, isTls: false });
  const verdictOn = (address: string) =>
    decideAddress(policy, { host: 'proxy.test', port: 3128, address, stage: 'peer' });

  for (const address of [
    '93.184.215.14',
    '10.0.0.7',
    '172.16.0.7',
    '192.168.0.7',
    '100.64.0.7',
    '127.0.0.1',
    '240.0.0.7',
    '198.18.0.7',
    '::ffff:10.0.0.7',
    'fd00::7',
    '::1',
    '2606:2800::1',
  ])
    test(`${address} may be one`, () => assert.equal(verdictOn(address).kind, 'allow'));

  for (const address of [
    '169.254.169.254',
    '169.254.0.1',
    '::ffff:169.254.169.254',
    '168.63.129.16',
    '100.100.100.200',
    '192.0.0.192',
    'fd00:ec2::254',
    'fd20:ce::254',
    'fe80::1',
    'fe80::1%eth0',
    '0.0.0.0',
    '::',
    '224.0.0.1',
    'ff02::1',
    '255.255.255.255',
    '64:ff9b::a9fe:a9fe',
    '2002:a9fe:a9fe::1',
    '::a9fe:a9fe',
    '::ffff:0:a9fe:a9fe',
    '2001:0:a9fe:a9fe::1',
    '2606:2800::5efe:a9fe:a9fe',
    'proxy',
  ])
    test(`${address} is none (R13)`, () => assert.equal(verdictOn(address).kind, 'deny'));
});

suite('the name of a proxy', () => {
  const asked = (host: string): string =>
    queryName(proxyPolicy({ host, port: 3128, isTls: false }), host);

  test('is looked up in the search list only where nobody but a private resolver knows it', () => {
    assert.equal(asked('proxy'), 'proxy');
    assert.equal(asked('proxy.egress.svc'), 'proxy.egress.svc');
    assert.equal(asked('proxy.corp.internal'), 'proxy.corp.internal');
    assert.equal(asked('proxy.example.com'), 'proxy.example.com.');
    assert.equal(asked('svc.example.com'), 'svc.example.com.');
  });
});
