// What tests of the call path have in common: a development pool on a raw loopback server.

import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';

import { createGuardedPool } from '#core/egress/guarded-pool.ts';
import type { GuardedPool, GuardedPoolOptions } from '#core/egress/guarded-pool.ts';
import { okWith } from '#test/support/raw-server.ts';
import type { RawRequest } from '#test/support/raw-server.ts';

export function poolOf(port: number, change: Partial<GuardedPoolOptions> = {}): GuardedPool {
  return createGuardedPool({
    origin: `http://127.0.0.1:${port}`,
    policy: {
      allowedHosts: ['127.0.0.1'],
      allowedPorts: [port],
      inClusterExceptions: [],
      development: true,
    },
    connections: 2,
    keepAliveMs: 30_000,
    connectTimeoutMs: 5_000,
    ...change,
  });
}

/** With the index of the request as its body. */
export function answerOk({ socket, index }: RawRequest): void {
  socket.write(okWith(`${index}`));
}

export async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 500 && !condition(); turn++) await delay(2);
  assert.ok(condition());
}

/** Until a socket that has just carried an answer can be used again. */
export async function untilRested(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await nextTurn();
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
