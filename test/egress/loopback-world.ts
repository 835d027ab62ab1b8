// The internet of one case: one real loopback listener that stands in for every address. It is
// reached only by the product's own sockets (`openSocket` dials it and says so nowhere but in
// `remoteAddress`), speaks TLS for any name and plain HTTP alike, as the first byte asks for, and
// writes down what arrived. Answers are written byte by byte, so that no server's good manners
// keep a bad header from the product.

import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { TLSSocket } from 'node:tls';

import type { IssuedCertificates } from './issued-certificates.ts';
import type { SeenRequest } from './observation.ts';

const TLS_HANDSHAKE = 0x16;

export interface CannedAnswer {
  readonly status: number;
  /** Text beyond ASCII goes out as UTF-8. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | AsyncIterable<Uint8Array>;
}

export interface DialTarget {
  readonly address: string;
  readonly port: number;
}

/** Undefined leaves the request without an answer. */
export type AnswerRequest = (request: SeenRequest, body: string) => CannedAnswer | undefined;

export class LoopbackWorld implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  readonly dialled: string[] = [];
  readonly faults: string[] = [];
  answer: AnswerRequest = () => jsonAnswer({});
  readonly #certificates: IssuedCertificates;
  readonly #listener: Server;
  readonly #http = createHttpServer((request) => void this.#receive(request));
  readonly #targets = new Map<number, DialTarget>();
  readonly #sockets = new Set<Socket>();

  private constructor(certificates: IssuedCertificates) {
    this.#certificates = certificates;
    this.#listener = createServer((socket) => this.#accept(socket));
  }

  static async open(certificates: IssuedCertificates): Promise<LoopbackWorld> {
    const world = new LoopbackWorld(certificates);
    world.#listener.listen(0, '127.0.0.1');
    await once(world.#listener, 'listening');
    return world;
  }

  /** In place of `net.connect`: a real socket whose peer is the address that was dialled. */
  readonly openSocket = (target: DialTarget): Socket => {
    this.dialled.push(target.address);
    const { port } = this.#listener.address() as AddressInfo;
    const socket = connect({ port, host: '127.0.0.1' });
    Object.defineProperty(socket, 'remoteAddress', {
      get: () => (socket.connecting || socket.destroyed ? undefined : target.address),
    });
    socket.once('connect', () => {
      if (socket.localPort !== undefined) this.#targets.set(socket.localPort, target);
    });
    return socket;
  };

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    const closed = once(this.#listener, 'close');
    this.#listener.close();
    await closed;
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
    socket.once('data', (first: Buffer) => {
      socket.pause();
      socket.unshift(first);
      this.#serve(socket, first[0] === TLS_HANDSHAKE);
    });
  }

  #serve(socket: Socket, isTls: boolean): void {
    const target = this.#targets.get(socket.remotePort ?? 0);
    if (target === undefined) {
      this.faults.push('a connection came past openSocket');
      socket.destroy();
      return;
    }
    const stream = isTls ? this.#secure(socket, target) : socket;
    stream.on('error', () => {});
    TARGETS.set(stream, target);
    this.#http.emit('connection', stream);
    if (!isTls) socket.resume();
  }

  #secure(socket: Socket, { address }: DialTarget): TLSSocket {
    return new TLSSocket(socket, {
      isServer: true,
      // Without a server name the peer is an address.
      secureContext: this.#certificates.contextFor(address),
      SNICallback: (name, done) => done(null, this.#certificates.contextFor(name)),
    });
  }

  async #receive(request: IncomingMessage): Promise<void> {
    const { socket } = request;
    const seen = { ...this.#describe(request), hasBody: false };
    this.requests.push(seen);
    try {
      const body = await text(request);
      seen.hasBody = body !== '';
      const answer = this.answer(seen, body);
      if (answer !== undefined) await writeAnswer(socket, answer);
    } catch {
      socket.destroy();
    }
  }

  #describe({ socket, headers, method = '', url = '', rawHeaders }: IncomingMessage): SeenRequest {
    const isTls = socket instanceof TLSSocket;
    const { host = '' } = headers;
    const name = host.replace(/:\d+$/, '');
    const dialled = TARGETS.get(socket)?.port ?? 0;
    const port = dialled === (isTls ? 443 : 80) ? '' : `:${dialled}`;
    if (host !== `${name}${port}`)
      this.faults.push(`Host ${JSON.stringify(host)} at port ${dialled}`);
    const servername = serverName(socket);
    if (servername !== undefined && servername !== name)
      this.faults.push(`Host ${JSON.stringify(host)} for server name ${servername}`);
    return {
      method,
      url: `${isTls ? 'https' : 'http'}://${name}${port}${url}`,
      headers: rawHeaders.filter((_, index) => index % 2 === 0).map((text) => text.toLowerCase()),
      hasBody: false,
    };
  }
}

/** The name that the client asked TLS for, if it did. */
function serverName(socket: Socket): string | undefined {
  const name: unknown = socket instanceof TLSSocket ? Reflect.get(socket, 'servername') : undefined;
  return typeof name === 'string' ? name : undefined;
}

/** By the stream that HTTP is read from. */
const TARGETS = new WeakMap<Socket, DialTarget>();

export function jsonAnswer(value: unknown): CannedAnswer {
  return {
    status: 200,
    headers: [['content-type', 'application/json']],
    body: JSON.stringify(value),
  };
}

async function writeAnswer(socket: Socket, answer: CannedAnswer): Promise<void> {
  const { status, headers, body } = answer;
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  if (typeof body === 'string') lines.push(`content-length: ${Buffer.byteLength(body)}\r\n`);
  socket.write(`HTTP/1.1 ${status} Canned\r\n${lines.join('')}connection: close\r\n\r\n`);
  if (typeof body === 'string') socket.end(body);
  else await pipeline(body, socket);
}
