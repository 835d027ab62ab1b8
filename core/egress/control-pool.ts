// The sockets of a pool that undici speaks on, for exchanges besides calls. They are opened by the
// guarded connector like all others; undici never resolves, dials or secures one itself, and
// HTTP/2, which would put many requests behind one check, stays off.

import { Readable } from 'node:stream';

import { errors, Pool } from 'undici';
import type { buildConnector } from 'undici';

import type { GuardedConnect } from './guarded-connector.ts';

export interface ControlPoolOptions {
  readonly url: URL;
  readonly connect: GuardedConnect;
  readonly connections: number;
  readonly keepAliveMs: number;
  readonly headersTimeoutMs: number;
  readonly bodyTimeoutMs: number;
}

export function createControlPool(options: ControlPoolOptions): Pool {
  return new Pool(options.url.origin, {
    connect: asUndiciConnector(options.connect),
    connections: options.connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: options.keepAliveMs,
    keepAliveMaxTimeout: options.keepAliveMs,
    headersTimeout: options.headersTimeoutMs,
    bodyTimeout: options.bodyTimeoutMs,
  });
}

/** undici gives an attempt up by destroying the stream that it got for it. */
function asUndiciConnector(connect: GuardedConnect): buildConnector.connector {
  return (_target, callback) => {
    const attempt = connect(callback);
    const handle = new Readable({ read: () => {} });
    handle.once('close', () => attempt.fail(new errors.InformationalError('given up')));
    return handle as unknown as ReturnType<buildConnector.connector>;
  };
}
