import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import {
  allowedHosts,
  checkCaller,
  checkMediaTypes,
  routeOf,
} from '#sidecar/agent-api/http-guards.ts';
import { AgentApiFixture, modernMessage } from '#test/support/agent-api-fixture.ts';

const PORT = 7317;

describe('the Host header', () => {
  const rows: readonly [string | undefined, string | undefined][] = [
    ['127.0.0.1:7317', undefined],
    ['localhost:7317', undefined],
    ['LOCALHOST:7317', undefined],
    ['[::1]:7317', undefined],
    ['127.0.0.1', undefined],
    ['localhost', undefined],
    ['[::1]', undefined],
    [undefined, 'HOST_REFUSED'],
    ['', 'HOST_REFUSED'],
    ['127.0.0.1:80', 'HOST_REFUSED'],
    ['localhost:8080', 'HOST_REFUSED'],
    ['attacker.example:7317', 'HOST_REFUSED'],
    ['localhost.attacker.example:7317', 'HOST_REFUSED'],
    ['127.0.0.1.nip.io:7317', 'HOST_REFUSED'],
    ['localhost.:7317', 'HOST_REFUSED'],
    ['127.0.0.1:07317', 'HOST_REFUSED'],
    ['user@127.0.0.1:7317', 'HOST_REFUSED'],
    ['10.0.0.7:7317', 'HOST_REFUSED'],
    ['::1:7317', 'HOST_REFUSED'],
    ['2130706433:7317', 'HOST_REFUSED'],
    ['127.0.0.1:7317, attacker.example', 'HOST_REFUSED'],
  ];
  for (const [host, code] of rows) {
    it(`${JSON.stringify(host ?? null)} is ${code ?? 'ours'}`, () =>
      assert.equal(checkCaller({ host }, allowedHosts(PORT))?.code, code));
  }
});

describe('the Origin header', () => {
  for (const origin of [
    'null',
    '',
    'http://localhost:7317',
    'http://127.0.0.1:7317',
    'https://app.example',
    'file://',
    'vscode-webview://x',
  ]) {
    it(`${JSON.stringify(origin)} is refused (R64)`, () =>
      assert.equal(
        checkCaller({ host: 'localhost', origin }, allowedHosts(PORT))?.code,
        'ORIGIN_REFUSED',
      ));
  }
});

describe('the path', () => {
  const rows: readonly [string, string][] = [
    ['/mcp', 'mcp undefined'],
    ['/mcp?session=1', 'mcp undefined'],
    ['/servers/desk/mcp', 'mcp desk'],
    ['/servers/desk-2/mcp?x', 'mcp desk-2'],
    ['/status', 'status'],
    ['/', 'none'],
    ['/mcp/', 'none'],
    ['//mcp', 'none'],
    ['/MCP', 'none'],
    ['/servers/Desk/mcp', 'none'],
    ['/servers/../mcp', 'none'],
    ['/servers/%64esk/mcp', 'none'],
    ['/servers//mcp', 'none'],
    ['/servers/desk/mcp/x', 'none'],
    ['http://attacker.example/mcp', 'none'],
    ['*', 'none'],
    ['', 'none'],
  ];
  for (const [url, expected] of rows) {
    it(`${JSON.stringify(url)} leads to ${expected}`, () => {
      const route = routeOf(url);
      assert.equal(route.kind === 'mcp' ? `mcp ${route.alias}` : route.kind, expected);
    });
  }
});

describe('media types', () => {
  const rows: readonly [string | undefined, string | undefined, string | undefined][] = [
    ['application/json', 'application/json, text/event-stream', undefined],
    ['application/json; charset=utf-8', undefined, undefined],
    ['Application/JSON', '*/*', undefined],
    ['application/json', 'application/json', undefined],
    ['application/json', 'text/event-stream;q=0.9', undefined],
    ['application/json', 'text/*', undefined],
    ['application/json', 'text/html, application/*;q=0.5', undefined],
    ['application/json', '', undefined],
    ['application/json', 'text/html', 'NOT_ACCEPTABLE'],
    ['application/json', 'application/xml, image/png', 'NOT_ACCEPTABLE'],
    [undefined, '*/*', 'UNSUPPORTED_MEDIA_TYPE'],
    ['text/plain', '*/*', 'UNSUPPORTED_MEDIA_TYPE'],
    ['application/json-seq', '*/*', 'UNSUPPORTED_MEDIA_TYPE'],
    ['application/x-www-form-urlencoded', '*/*', 'UNSUPPORTED_MEDIA_TYPE'],
    ['text/plain, application/json', '*/*', 'UNSUPPORTED_MEDIA_TYPE'],
  ];
  for (const [contentType, accept, code] of rows) {
    it(`${contentType} with Accept ${JSON.stringify(accept ?? null)} is ${code ?? 'served'}`, () =>
      assert.equal(checkMediaTypes(contentType, accept)?.code, code));
  }
});

describe('the guards on a real socket', () => {
  it('refuse a foreign Host and any Origin on every path and method, before anything is read (R17, R64)', async () => {
    await using fixture = await AgentApiFixture.open();
    const body = modernMessage('tools/list');
    for (const path of ['/mcp', '/servers/desk/mcp', '/status', '/nothing']) {
      for (const method of ['POST', 'GET', 'DELETE', 'OPTIONS']) {
        const sent = { path, method, ...(method === 'POST' ? { body } : {}) };
        const rebound = await fixture.send({
          ...sent,
          headers: { Host: `attacker.example:${fixture.port}` },
        });
        assert.equal(rebound.status, 403, `${method} ${path}`);
        const paged = await fixture.send({ ...sent, headers: { Origin: 'null' } });
        assert.equal(paged.status, 403, `${method} ${path}`);
        assert.equal(paged.headers['access-control-allow-origin'], undefined);
      }
    }
    assert.equal(fixture.relay.exchanges.length, 0);
    assert.ok(
      fixture.lines.every(
        (line) => line.error_code === 'HOST_REFUSED' || line.error_code === 'ORIGIN_REFUSED',
      ),
    );
    assert.equal(fixture.lines.length, 32);
  });

  it('serve localhost and ::1 by their names', async () => {
    await using fixture = await AgentApiFixture.open();
    const byName = await fixture.modern(
      'tools/list',
      {},
      { headers: { Host: `localhost:${fixture.port}` } },
    );
    assert.equal(byName.status, 200);
    const overIpv6 = await fixture
      .modern('tools/list', {}, { host: '::1', headers: { Host: `[::1]:${fixture.port}` } })
      .catch((error: { code?: string }) => error);
    // A machine without IPv6 has no ::1 to serve.
    assert.ok(
      'status' in overIpv6
        ? overIpv6.status === 200
        : ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'ECONNREFUSED'].includes(overIpv6.code ?? ''),
    );
  });
});
