import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { checkSidecarConfig } from '#core/config/sidecar-config.ts';
import { sidecarConfig } from '#test/support/sidecar-config.ts';
import { throughProxy } from '#test/support/proxied-sidecar.ts';

const RULES = { development: false };
const check = (edit: Parameters<typeof sidecarConfig>[0]) =>
  checkSidecarConfig(JSON.parse(sidecarConfig(edit).text), RULES);

suite('the proxy of a configuration', () => {
  test('is optional, and may be none', () => {
    assert.equal(check({}).kind, 'ok');
    assert.equal(check({ proxy: { mode: 'Direct' } }).kind, 'ok');
  });

  test('is named with how names are resolved', () => {
    const edit = throughProxy(3128, { resolve: 'ProxyOnly', metadataName: 'm.example.com' });
    const verdict = check(edit);
    assert.deepEqual(verdict.kind === 'ok' && verdict.config.proxy, edit.proxy);
  });

  test('is a feature that a sidecar must know', () => {
    assert.deepEqual(check({ ...throughProxy(3128), requires: ['egress-proxy', 'more'] }), {
      kind: 'unsupported',
      features: ['more'],
    });
  });

  for (const url of [
    'http://127.0.0.1',
    'http://ana:secret@127.0.0.1:3128',
    'socks5://127.0.0.1:1080',
    'http://127.0.0.1:3128/',
  ])
    test(`${url} is none, and is not repeated`, () => {
      const verdict = check({
        requires: ['egress-proxy'],
        proxy: { mode: 'Connect', url, resolve: 'Local' },
      });
      assert.ok(verdict.kind === 'invalid');
      assert.deepEqual(
        verdict.issues.map(({ path }) => path),
        ['proxy.url'],
      );
      assert.ok(!JSON.stringify(verdict).includes('secret'));
    });
});
