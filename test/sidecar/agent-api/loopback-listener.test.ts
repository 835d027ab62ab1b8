import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, it } from 'node:test';

import { openLoopbackListener } from '#sidecar/agent-api/loopback-listener.ts';
import { sendHttp } from '#test/support/agent-api-fixture.ts';

async function reach(host: string, port: number): Promise<string> {
  const socket = connect(port, host);
  try {
    await once(socket, 'connect');
    return 'connected';
  } catch (error) {
    return String(Reflect.get(error as object, 'code'));
  } finally {
    socket.destroy();
  }
}

describe('the loopback listener', () => {
  it('is reachable on loopback addresses only', async () => {
    const listener = await openLoopbackListener(0, (_, response) => void response.end('hi'));
    assert.equal((await sendHttp(listener.port, { method: 'GET' })).text, 'hi');
    const others = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter(({ internal, address }) => !internal && !address.startsWith('fe80'));
    for (const { address } of others)
      assert.notEqual(await reach(address, listener.port), 'connected', address);
    await listener.close();
    assert.notEqual(await reach('127.0.0.1', listener.port), 'connected');
  });

  it('opens both addresses or neither', async () => {
    const other = createServer();
    other.listen({ host: '::1', port: 0 });
    const hasIpv6 = await Promise.race([
      once(other, 'listening').then(() => true),
      once(other, 'error').then(() => false),
    ]).catch(() => false);
    if (!hasIpv6) return;
    const { port } = other.address() as AddressInfo;
    await assert.rejects(
      openLoopbackListener(port, () => {}),
      { code: 'PORT_IN_USE' },
    );
    assert.equal(await reach('127.0.0.1', port), 'ECONNREFUSED');
    await once(other.close(), 'close');
  });

  it('closes idle connections when it stops accepting, and those in use when it closes', async () => {
    const started = Promise.withResolvers<void>();
    const listener = await openLoopbackListener(0, (request, response) => {
      if (request.url === '/hang') started.resolve();
      else response.end();
    });
    const idle = connect(listener.port, '127.0.0.1');
    idle.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(idle, 'data');
    const busy = connect(listener.port, '127.0.0.1');
    busy.write('GET /hang HTTP/1.1\r\nHost: a\r\n\r\n');
    await started.promise;
    const idleClosed = once(idle, 'close');
    listener.stopAccepting();
    await idleClosed;
    assert.equal(busy.destroyed, false);
    assert.equal(await reach('127.0.0.1', listener.port), 'ECONNREFUSED');
    const busyClosed = once(busy, 'close');
    await listener.close();
    await busyClosed;
  });
});
