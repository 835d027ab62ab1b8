// A client of a CONNECT proxy over TLS with a client certificate. It writes the authority as the
// test gives it, with nothing parsed or normalized on the way (RFC 9110 §9.3.6).

import { once } from 'node:events';
import { connect } from 'node:tls';
import type { TLSSocket } from 'node:tls';

import type { TestCertificate } from '#test/support/test-certificates.ts';

export interface ProxyAccess {
  readonly port: number;
  /** Of the proxy's own certificate, which is for `localhost`. */
  readonly caPem: string;
  readonly client: TestCertificate | undefined;
}

export type ConnectOutcome =
  | { readonly kind: 'open'; readonly socket: TLSSocket }
  | { readonly kind: 'refused'; readonly status: number }
  /** The connection ended with no answer. */
  | { readonly kind: 'cut' };

const ANSWER = /^HTTP\/1\.[01] (\d{3})[^]*?\r\n\r\n/;

export function connectThrough(access: ProxyAccess, authority: string): Promise<ConnectOutcome> {
  const { port, caPem, client } = access;
  const identity = client === undefined ? {} : { cert: client.certPem, key: client.keyPem };
  const socket = connect({
    host: '127.0.0.1',
    port,
    servername: 'localhost',
    ca: caPem,
    ...identity,
  });
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  return new Promise((resolve) => {
    let head = '';
    const onData = (chunk: Buffer): void => {
      head += chunk.toString('latin1');
      const status = ANSWER.exec(head)?.[1];
      if (status === undefined) return;
      socket.off('data', onData).pause();
      if (status === '200') return resolve({ kind: 'open', socket });
      socket.destroy();
      resolve({ kind: 'refused', status: Number(status) });
    };
    socket.on('data', onData);
    // A refused handshake may show as an error, a reset or a plain end.
    socket.on('error', () => undefined).once('close', () => resolve({ kind: 'cut' }));
  });
}

/** One request inside an open tunnel, to a server that must prove that it is `host`. */
export async function getThroughTunnel(
  tunnel: TLSSocket,
  { host, caPem }: { readonly host: string; readonly caPem: string },
): Promise<string> {
  const inner = connect({ socket: tunnel, servername: host, ca: caPem });
  try {
    await once(inner, 'secureConnect');
    inner.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    let text = '';
    for await (const chunk of inner) text += String(chunk);
    return text;
  } finally {
    inner.destroy();
    tunnel.destroy();
  }
}
