// One fake or real server as one partition reaches it, for the tests of this folder.

import { systemClock } from '#core/clock.ts';
import type { Clock } from '#core/clock.ts';
import type { ServerLimits } from '#core/config/limits-schema.ts';
import type { ServerConfig } from '#core/config/sidecar-config.ts';
import { createGuardedPool } from '#core/egress/guarded-pool.ts';
import { createLogger } from '#core/telemetry/log.ts';
import { Deadlines } from '#sidecar/upstream/deadlines.ts';
import type { UpstreamTarget } from '#sidecar/upstream/upstream-types.ts';

export interface TargetOptions {
  readonly limits?: Partial<ServerLimits>;
  readonly protocol?: Partial<ServerConfig['protocol']>;
  readonly clock?: Clock;
  readonly connections?: number;
  readonly allowedHosts?: readonly string[];
  /** Receives log lines. */
  readonly onLine?: (line: string) => void;
}

export const LIMITS: ServerLimits = {
  maxConcurrency: 8,
  queueSize: 16,
  queueTimeoutMs: 10_000,
  connectTimeoutMs: 5_000,
  requestTimeoutMs: 30_000,
  streamReadTimeoutMs: 300_000,
  maxRequestBytes: 1_048_576,
  maxResponseBytes: 1_048_576,
  maxInputRounds: 10,
  maxRetries: 2,
  terminateOnClose: true,
};

export interface TestTarget extends UpstreamTarget, AsyncDisposable {}

export function targetFor(endpoint: string, options: TargetOptions = {}): TestTarget {
  const url = new URL(endpoint);
  const allowedHosts = [...(options.allowedHosts ?? [url.hostname])];
  const server: ServerConfig = {
    alias: 'fake',
    namespace: 'test',
    name: 'fake',
    endpoint,
    transport: 'StreamableHTTP',
    resource: endpoint,
    protocol: {
      era: 'Auto',
      versions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'],
      ...options.protocol,
    },
    egress: { allowedHosts, allowedPorts: [Number(url.port)], inClusterExceptions: [] },
    authorization: { type: 'None' },
    tools: { allow: [['*']], trustReadOnlyHint: false, overrides: [] },
    limits: { ...LIMITS, ...options.limits },
    cache: { defaultTtlMs: 3_600_000 },
    priority: 0,
  };
  const clock = options.clock ?? systemClock;
  const pool = createGuardedPool({
    origin: url.origin,
    policy: { ...server.egress, development: true },
    connections: options.connections ?? 12,
    keepAliveMs: 30_000,
    connectTimeoutMs: server.limits.connectTimeoutMs,
    clock,
  });
  const log = createLogger({
    name: 'test',
    level: 'debug',
    destination: { write: (line) => options.onLine?.(line) },
  });
  return {
    server,
    pool,
    path: url.pathname,
    clock,
    deadlines: new Deadlines(clock),
    log,
    [Symbol.asyncDispose]: () => pool.destroy(),
  };
}
