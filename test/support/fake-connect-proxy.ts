// A CONNECT proxy on loopback that does what a test tells it: by default it opens tunnels to the
// loopback ports that stand behind names, and refuses every other name with 403; a trick replaces
// that. It records each CONNECT as it arrived, who asked (the certificate's common name), and how
// many connections there were, so that a test can tell what went through it and what went around.

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';

import type { TestCertificate } from './test-certificates.ts';

export interface SeenConnect {
  /** `host:port` as it was asked for. */
  readonly authority: string;
  /** The whole head. */
  readonly head: string;
  /** Common name of the client's certificate. */
  readonly client: string | undefined;
  readonly isResumed: boolean;
}

/** What is done with one CONNECT. */
export type ProxyTrick = (socket: Socket, request: SeenConnect) => void;

export interface FakeConnectProxyOptions {
  /** Loopback ports behind authorities, `mcp.test:443`; more may be added later. */
  readonly routes?: Readonly<Record<string, number>>;
  readonly trick?: ProxyTrick;
  /** Done with every connection as soon as it is open. */
  readonly onConnection?: (socket: Socket) => void;
  readonly tls?: { readonly server: TestCertificate; readonly clientCaPem?: string };
  readonly port?: number;
}

const answer =
  (text: string): ProxyTrick =>
  (socket) =>
    void socket.end(text);

/** One for each way in which a proxy can fail or refuse. */
export const TRICKS = {
  /** Squid's word for its policy. */
  forbidden: answer('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno'),
  /** smokescreen's. */
  authenticate: answer('HTTP/1.1 407 Proxy Authentication Required\r\n\r\nEgress proxying denied'),
  badGateway: answer('HTTP/1.1 502 Bad Gateway\r\n\r\n'),
  unavailable: answer('HTTP/1.1 503 Service Unavailable\r\n\r\n'),
  tooMany: answer('HTTP/1.1 429 Too Many Requests\r\n\r\n'),
  redirect: answer('HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n'),
  accepted: answer('HTTP/1.1 202 Accepted\r\n\r\n'),
  interim: answer('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n'),
  chunked: answer('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
  garbage: answer('\x00\x01\x02 SSH-2.0-OpenSSH_9.9\r\n\r\n'),
  oldHttp: answer('<html>200 OK</html>'),
  bareLineFeeds: answer('HTTP/1.1 200 OK\n\n'),
  foldedHeader: answer('HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\n\r\n'),
  /** Reads on and says nothing. */
  silence: () => {},
  halfHead: (socket) => void socket.write('HTTP/1.1 200 Connection est'),
  halfHeadThenEnd: answer('HTTP/1.1 200 OK\r\nVia: x'),
  headerFlood: (socket) => flood(socket),
  closesAtOnce: (socket) => void socket.destroy(),
  resets: (socket) => reset(socket),
  opensThenResets: (socket) =>
    void socket.write('HTTP/1.1 200 OK\r\n\r\n', () => setTimeout(() => reset(socket), 5)),
} as const satisfies Readonly<Record<string, ProxyTrick>>;

/** For `onConnection`: the answer comes before the question. */
export function answerUnasked(socket: Socket): void {
  socket.write('HTTP/1.1 200 OK\r\n\r\n');
}

export class FakeConnectProxy implements AsyncDisposable {
  readonly connects: SeenConnect[] = [];
  readonly routes: Map<string, number>;
  /** In place of what a good proxy does. */
  trick: ProxyTrick | undefined;
  connections = 0;
  readonly #options: FakeConnectProxyOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(options: FakeConnectProxyOptions) {
    this.#options = options;
    this.routes = new Map(Object.entries(options.routes ?? {}));
    this.trick = options.trick;
    const { tls } = options;
    const serve = (socket: Socket): void => this.#serve(socket);
    this.#server =
      tls === undefined
        ? createServer(serve)
        : createTlsServer(
            {
              cert: tls.server.certPem,
              key: tls.server.keyPem,
              ...(tls.clientCaPem === undefined
                ? {}
                : { ca: tls.clientCaPem, requestCert: true, rejectUnauthorized: true }),
            },
            serve,
          );
    this.#server.on('connection', (socket: Socket) => {
      this.connections += 1;
      this.#keep(socket);
    });
    this.#server.on('tlsClientError', () => {});
  }

  static async start(options: FakeConnectProxyOptions = {}): Promise<FakeConnectProxy> {
    const proxy = new FakeConnectProxy(options);
    proxy.#server.listen(options.port ?? 0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  /** Authorities that were asked for, in order. */
  get asked(): string[] {
    return this.connects.map(({ authority }) => authority);
  }

  /** Ends all connections and stops listening, as a process that dies. */
  async die(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    if (!this.#server.listening) return;
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.die();
  }

  #serve(socket: Socket): void {
    this.#keep(socket);
    this.#options.onConnection?.(socket);
    let text = '';
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      if (!text.includes('\r\n\r\n')) return;
      socket.off('data', onData);
      socket.pause();
      this.#answer(socket, text);
    };
    socket.on('data', onData);
  }

  #answer(socket: Socket, head: string): void {
    const authority =
      /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head)?.[1] ?? head.split('\r\n')[0] ?? '';
    const isResumed = socket instanceof TLSSocket && socket.isSessionReused();
    const request = { authority, head, client: clientOf(socket), isResumed };
    this.connects.push(request);
    if (this.trick !== undefined) {
      socket.resume();
      this.trick(socket, request);
      return;
    }
    const port = this.routes.get(authority);
    if (port === undefined) TRICKS.forbidden(socket, request);
    else this.#tunnel(socket, port);
  }

  /** As a good proxy does; for tricks that are only about some targets. */
  forward(socket: Socket, { authority }: SeenConnect): void {
    const port = this.routes.get(authority);
    if (port === undefined) socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    else this.#tunnel(socket, port);
  }

  #tunnel(socket: Socket, port: number): void {
    const target = connect(port, '127.0.0.1');
    this.#keep(target);
    target.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(target).pipe(socket);
    });
    target.once('close', () => socket.destroy());
    socket.once('close', () => target.destroy());
  }

  #keep(socket: Socket): void {
    if (this.#sockets.has(socket)) return;
    this.#sockets.add(socket);
    socket.on('error', () => {}).once('close', () => this.#sockets.delete(socket));
  }
}

function clientOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const name: unknown = socket.getPeerCertificate().subject?.CN;
  return typeof name === 'string' ? name : undefined;
}

function reset(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

function flood(socket: Socket): void {
  const line = `X-Flood: ${'a'.repeat(1000)}\r\n`;
  const write = (): void => {
    if (!socket.destroyed) socket.write(line, write);
  };
  socket.write('HTTP/1.1 200 OK\r\n', write);
}
