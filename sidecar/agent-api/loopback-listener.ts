// The agent API's sockets: 127.0.0.1, and ::1 on the same port where the machine has it; never
// another address. Opens both or neither, so that nobody else can answer for `localhost`.

import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import { FairleadError } from '#core/errors.ts';

/** Longer than any client's pool keeps idle sockets, so that the client closes first. */
const KEEP_ALIVE_MS = 75_000;
/** For head and body together; a local client needs milliseconds. */
const REQUEST_MS = 60_000;
/** Mirrored parameters travel in headers. */
const MAX_HEADER_BYTES = 65_536;
/** With port 0 the kernel's choice for IPv4 may be taken on IPv6. */
const FREE_PORT_TRIES = 8;

export class LoopbackListener {
  readonly port: number;
  readonly #servers: readonly Server[];

  constructor(port: number, servers: readonly Server[]) {
    this.port = port;
    this.#servers = servers;
  }

  /** No new connections, and no idle ones; those with a request in flight stay. */
  stopAccepting(): void {
    for (const server of this.#servers) {
      server.close();
      server.closeIdleConnections();
    }
  }

  closeIdleConnections(): void {
    for (const server of this.#servers) server.closeIdleConnections();
  }

  /** Closes every socket; resolves when all have closed. */
  async close(): Promise<void> {
    await Promise.all(this.#servers.map(closeServer));
  }
}

/** Port 0 takes any free port. Throws PORT_IN_USE. */
export async function openLoopbackListener(
  port: number,
  handle: RequestListener,
): Promise<LoopbackListener> {
  for (let tries = 1; ; tries += 1) {
    const ipv4 = await listen({ host: '127.0.0.1', port }, handle);
    const bound = (ipv4.address() as AddressInfo).port;
    try {
      return new LoopbackListener(bound, [
        ipv4,
        await listen({ host: '::1', port: bound, ipv6Only: true }, handle),
      ]);
    } catch (error) {
      const code = Reflect.get(error as object, 'code');
      if (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT')
        return new LoopbackListener(bound, [ipv4]);
      await closeServer(ipv4);
      if (port !== 0 || tries === FREE_PORT_TRIES || !(error instanceof FairleadError)) throw error;
    }
  }
}

function listen(
  address: { host: string; port: number; ipv6Only?: boolean },
  handle: RequestListener,
): Promise<Server> {
  const server = createServer(
    {
      keepAliveTimeout: KEEP_ALIVE_MS,
      requestTimeout: REQUEST_MS,
      headersTimeout: REQUEST_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      noDelay: true,
    },
    handle,
  );
  // The handler judges the declared size before it lets the body come.
  server.on('checkContinue', handle);
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(asPortFault(error, address)));
    server.listen(address, () => {
      server.removeAllListeners('error');
      resolve(server);
    });
  });
}

function asPortFault(error: Error, { host, port }: { host: string; port: number }): Error {
  if (Reflect.get(error, 'code') !== 'EADDRINUSE') return error;
  return new FairleadError('PORT_IN_USE', {
    publicDetail: `${host}:${port} is taken.`,
    cause: error,
  });
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
