// A TCP proxy on loopback between a client and a real server that can be cut and mended: the network
// fails while the server goes on. It forwards bytes as they are, so TLS ends where it did.

import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

export class CutProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;
  /** Connections that were forwarded so far. */
  accepted = 0;

  private constructor(target: URL) {
    this.#server = createServer((inner) => {
      if (this.#isCut) {
        inner.destroy();
        return;
      }
      this.accepted += 1;
      const outer = connect(Number(target.port), target.hostname);
      this.#join(inner, outer);
      this.#join(outer, inner);
    });
  }

  static async start(targetUrl: string): Promise<CutProxy> {
    const proxy = new CutProxy(new URL(targetUrl));
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    return `https://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  get openConnections(): number {
    return this.#sockets.size / 2;
  }

  /** Ends all connections, and each new one, until `mend`. */
  cut(): void {
    this.#isCut = true;
    this.cutOnce();
  }

  /** Ends the connections that are open now. */
  cutOnce(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#isCut = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.pipe(to);
    from.once('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
    from.on('error', () => from.destroy());
  }
}
