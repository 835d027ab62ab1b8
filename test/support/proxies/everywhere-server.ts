// Listens on every address of the test's own network namespace, public, private and special, and
// remembers which address each connection was made to. On TLS ports it has a certificate for each
// host of the test and answers HTTP; on plain ports it plays a metadata service that answers all.

import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import type { SecureContext } from 'node:tls';

import type { TestAuthority } from '#test/support/test-certificates.ts';

export interface Arrival {
  readonly address: string;
  readonly port: number;
}

export interface EverywhereServer extends AsyncDisposable {
  /** Every connection that was made before the question, to any port, since the last `forget`. */
  arrivals(): Promise<readonly Arrival[]>;
  forget(): Promise<void>;
}

export interface EverywhereOptions {
  readonly authority: TestAuthority;
  /** Exact or `*.suffix`. Who is named in the handshake and is none of them gets a certificate for another name. */
  readonly hosts: readonly string[];
  readonly tlsPorts: readonly number[];
  readonly plainPorts: readonly number[];
  readonly handle?: RequestListener;
}

/** Not counted: only this file connects to it. */
const FENCE = '198.18.53.2';
const PLAIN_ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret';

export async function startEverywhereServer(options: EverywhereOptions): Promise<EverywhereServer> {
  const arrivals: Arrival[] = [];
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    const { localAddress = '', localPort = 0 } = socket;
    const address = localAddress.replace(/^::ffff:(?=\d+\.)/, '');
    if (address === FENCE) socket.destroy();
    else arrivals.push({ address, port: localPort });
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
  };
  const servers: Server[] = [
    ...options.tlsPorts.map(() => tlsServer(options)),
    ...options.plainPorts.map(() => createServer((socket) => socket.end(PLAIN_ANSWER))),
  ];
  for (const [index, port] of [...options.tlsPorts, ...options.plainPorts].entries()) {
    const server = servers[index]?.on('connection', accept).listen(port, '::');
    if (server !== undefined) await once(server, 'listening');
  }
  // Connections are accepted in their order: once this one is ended, all earlier ones are counted.
  const fence = async (): Promise<void> => {
    for (const port of [...options.tlsPorts, ...options.plainPorts]) {
      await once(
        connect(port, FENCE)
          .on('error', () => undefined)
          .resume(),
        'close',
      );
    }
  };
  return {
    async arrivals() {
      await fence();
      return [...arrivals];
    },
    async forget() {
      await fence();
      arrivals.splice(0);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      for (const server of servers) await new Promise((resolve) => server.close(resolve));
    },
  };
}

function tlsServer({ authority, hosts, handle = sayWhere }: EverywhereOptions): Server {
  const contexts = new Map(
    ['unknown.example', ...hosts].map((host) => {
      const { certPem, keyPem } = authority.issue({ names: [host] });
      return [host, createSecureContext({ cert: certPem, key: keyPem })] as const;
    }),
  );
  const contextFor = (name: string): SecureContext | undefined =>
    contexts.get(name) ??
    contexts.get(name.replace(/^[^.]*/, '*')) ??
    contexts.get('unknown.example');
  const SNICallback = (
    name: string,
    done: (error: null, context: SecureContext | undefined) => void,
  ): void => done(null, contextFor(name));
  return createHttpsServer({ SNICallback }, handle).on('tlsClientError', () => undefined);
}

const sayWhere: RequestListener = (request, response) => {
  response.end(`${request.headers.host ?? ''} at ${request.socket.localAddress ?? ''}`);
};
