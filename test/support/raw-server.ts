// A loopback server of bytes: it collects whole HTTP/1.1 requests and leaves every answer, good or
// bad, to the test. For the client's side of the wire, which must also stand answers that no HTTP
// library would write.

import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

export interface RawRequest {
  /** Head and body. */
  readonly text: string;
  /** Counted from 1, over all connections. */
  readonly index: number;
  /** Counted from 1. */
  readonly connection: number;
  readonly socket: Socket;
}

export interface RawServer extends AsyncDisposable {
  readonly port: number;
  readonly requests: readonly RawRequest[];
  readonly connections: number;
  readonly openConnections: number;
}

/** Called with every whole request; with `onHead` as soon as its head is there. */
export async function openRawServer(
  answer: (request: RawRequest) => void,
  { onHead = false }: { readonly onHead?: boolean } = {},
): Promise<RawServer> {
  const requests: RawRequest[] = [];
  const open = new Set<Socket>();
  let connections = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    connections += 1;
    const connection = connections;
    open.add(socket);
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      for (let end = requestEnd(text, onHead); end !== -1; end = requestEnd(text, onHead)) {
        const request = {
          text: text.slice(0, end),
          index: requests.length + 1,
          connection,
          socket,
        };
        text = text.slice(end);
        requests.push(request);
        answer(request);
      }
    });
    socket.on('end', () => socket.end());
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
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

function requestEnd(text: string, onHead: boolean): number {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return -1;
  const length = Number(/content-length: ([0-9]+)/i.exec(text.slice(0, end))?.[1] ?? 0);
  const total = end + 4 + (onHead ? 0 : length);
  return total <= text.length ? total : -1;
}

/** A 200 with a length. */
export function okWith(body: string, headers = ''): string {
  return `HTTP/1.1 200 OK\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
