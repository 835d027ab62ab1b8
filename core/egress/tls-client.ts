// TLS to one host, on sockets that others opened. The certificate must be valid for the host that
// was judged, whatever headers a request has; nothing in the environment turns that off. Sessions
// are resumed within this one object only: they never vouch for another pool.

import { isIP } from 'node:net';
import type { Socket } from 'node:net';
import { connect, createSecureContext } from 'node:tls';
import type { SecureContext, TLSSocket } from 'node:tls';

import { trustOf } from './trust-roots.ts';

export interface TlsClientOptions {
  /** Name or address literal, without brackets. */
  readonly host: string;
  readonly caBundle?: string | undefined;
  /** In place of the default roots and the bundle. */
  readonly secureContext?: SecureContext | undefined;
  /** Each handshake is a whole one. */
  readonly isNeverResumed?: boolean;
}

export interface TlsListener {
  onSecured(): void;
  /** May come again, and after `onSecured`: the socket then has another owner. */
  onFailed(error: Error): void;
}

export class TlsClient {
  readonly #options: TlsClientOptions;
  #context: SecureContext | undefined;
  #session: Buffer | undefined;

  constructor(options: TlsClientOptions) {
    this.#options = options;
    this.#context = options.secureContext;
  }

  /** Before anything is dialled; throws an EgressError when the CA bundle is none. */
  prepare(): SecureContext {
    this.#context ??=
      trustOf(this.#options.caBundle) ?? createSecureContext({ minVersion: 'TLSv1.2' });
    return this.#context;
  }

  secure(socket: Socket, listener: TlsListener): TLSSocket {
    const { host } = this.#options;
    const secured = connect({
      socket,
      host,
      // An address is proved by the certificate's addresses and is no server name (RFC 6066).
      servername: isIP(host) === 0 ? host : '',
      secureContext: this.prepare(),
      rejectUnauthorized: true,
      ALPNProtocols: ['http/1.1'],
      ...(this.#session === undefined ? {} : { session: this.#session }),
    });
    secured.once('secureConnect', () => listener.onSecured());
    if (this.#options.isNeverResumed !== true)
      secured.on('session', (session) => {
        this.#session = session;
      });
    secured.on('error', (error) => {
      // A session that the server can't use any more must not fail every attempt after this one.
      this.#session = undefined;
      listener.onFailed(error);
    });
    secured.once('close', () => listener.onFailed(closedInHandshake()));
    return secured;
  }
}

function closedInHandshake(): Error {
  return Object.assign(new Error('closed in the handshake'), { code: 'ECONNRESET' });
}
