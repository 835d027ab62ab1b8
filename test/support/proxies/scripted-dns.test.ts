import assert from 'node:assert/strict';
import { Resolver } from 'node:dns/promises';
import { test } from 'node:test';

import { startScriptedDns } from './scripted-dns.ts';

test('each question is answered from the script, with a time to live of 0', async () => {
  await using dns = await startScriptedDns(({ name, type, before }) => {
    if (type === 'AAAA') return ['fd00::9', '::ffff:10.9.8.7'];
    return name === 'a.example' ? [`10.0.0.${String(before)}`] : [];
  });
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${String(dns.port)}`]);
  const options = { ttl: true } as const;
  assert.deepEqual(await resolver.resolve4('a.example', options), [
    { address: '10.0.0.0', ttl: 0 },
  ]);
  assert.deepEqual(await resolver.resolve4('a.example', options), [
    { address: '10.0.0.1', ttl: 0 },
  ]);
  assert.deepEqual(await resolver.resolve6('a.example'), ['fd00::9', '::ffff:10.9.8.7']);
  await assert.rejects(resolver.resolve4('b.example'), { code: 'ENODATA' });
  assert.equal(dns.askedFor('a.example'), 3);
});
