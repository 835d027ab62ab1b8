// A guarded pool for tests: a production policy that reaches a loopback TLS server under a name,
// by an explicit in-cluster exception, with an injected resolver and a record of all decisions.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';

import type { EgressDecision, EgressPolicy } from '#core/egress/egress-policy.ts';
import { createGuardedPool } from '#core/egress/guarded-pool.ts';
import type { GuardedPool, GuardedPoolOptions } from '#core/egress/guarded-pool.ts';
import type { ResolveHost } from '#core/egress/pinned-lookup.ts';
import { FairleadError } from '#core/errors.ts';

import type { ExchangeOutcome } from './exchange-outcome.ts';
import { createTestAuthority } from './test-certificates.ts';

export const HOST = 'mcp.test';
export const authority = createTestAuthority();
export const goodCertificate = authority.issue({ names: [HOST] });

/** A production policy that reaches a loopback server under a name, by an explicit exception. */
export function policyFor(port: number, change: Partial<EgressPolicy> = {}): EgressPolicy {
  return {
    allowedHosts: [HOST],
    allowedPorts: [443],
    inClusterExceptions: [{ host: HOST, cidrs: ['127.0.0.0/8'], ports: [port] }],
    development: false,
    ...change,
  };
}

export function resolvesTo(...addresses: readonly string[]): ResolveHost {
  return (_host, _options, callback) => {
    setImmediate(() =>
      callback(
        null,
        addresses.map((address) => ({ address, family: 0 })),
      ),
    );
  };
}

export interface Opened {
  readonly pool: GuardedPool;
  readonly decisions: EgressDecision[];
}

export function openPool(port: number, change: Partial<GuardedPoolOptions> = {}): Opened {
  const decisions: EgressDecision[] = [];
  const pool = createGuardedPool({
    origin: `https://${HOST}:${port}`,
    policy: policyFor(port),
    connections: 4,
    keepAliveMs: 30_000,
    connectTimeoutMs: 5000,
    caBundle: authority.certPem,
    resolve: resolvesTo('127.0.0.1'),
    onDecision: (decision) => decisions.push(decision),
    ...change,
  });
  return { pool, decisions };
}

export function assertFailed(
  outcome: ExchangeOutcome,
  code: string,
  reason: string,
): FairleadError {
  assert.equal(outcome.kind, 'error');
  assert.ok(outcome.kind === 'error');
  assert.ok(outcome.error instanceof FairleadError, inspect(outcome.error));
  assert.deepEqual(outcome.class, { kind: 'not-sent', code, reason });
  assert.equal(outcome.wasStarted, false);
  return outcome.error;
}

export async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
