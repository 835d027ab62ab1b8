// A plain HTTP or HTTPS server on loopback that counts what reaches it: connections, requests,
// bodies. For tests of the egress door, which care whether something arrived, not what it means.

import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

import type { TestCertificate } from './test-certificates.ts';

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly host: string | undefined;
  readonly servername: string | undefined;
  readonly body: string;
}

export type Answer = (request: IncomingMessage, response: ServerResponse, index: number) => void;

export interface FakeRemoteOptions {
  readonly certificate?: TestCertificate;
  /** Called when the whole request has arrived; the default answers 200 `ok`. */
  readonly answer?: Answer;
}

export interface FakeRemote extends AsyncDisposable {
  readonly port: number;
  readonly requests: readonly SeenRequest[];
  /** TCP connections accepted so far. */
  readonly connections: number;
  readonly openConnections: number;
}

export async function openFakeRemote(options: FakeRemoteOptions = {}): Promise<FakeRemote> {
  const requests: SeenRequest[] = [];
  const open = new Set<Socket>();
  let connections = 0;
  const answer = options.answer ?? ((_request, response) => response.end('ok'));
  const listener: RequestListener = (request, response) => {
    readBody(request, (body) => {
      requests.push(describe(request, body));
      answer(request, response, requests.length);
    });
  };
  const { certificate } = options;
  const server: Server =
    certificate === undefined
      ? createServer(listener)
      : createTlsServer({ cert: certificate.certPem, key: certificate.keyPem }, listener);
  server.on('connection', (socket: Socket) => {
    connections += 1;
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    requests,
    get connections() {
      return connections;
    },
    get openConnections() {
      return open.size;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function readBody(request: IncomingMessage, done: (body: string) => void): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => done(Buffer.concat(chunks).toString('utf8')));
  request.on('error', () => {});
}

function describe(request: IncomingMessage, body: string): SeenRequest {
  const servername: unknown = (request.socket as TLSSocket).servername;
  return {
    method: request.method ?? '',
    url: request.url ?? '',
    host: request.headers.host,
    servername: typeof servername === 'string' ? servername : undefined,
    body,
  };
}
