// The sidecar's config for the bench, in the rendered contract and checked by it: the upstream
// under the alias `up`, and on request servers that are down. Nothing is switched off. Pure.

import {
  checkSidecarConfig,
  encodeSidecarConfig,
  PROTOCOL_VERSIONS,
  type ServerConfig,
  type SidecarConfigBody,
} from '#core/config/sidecar-config.ts';

export interface SidecarConfigInput {
  readonly agentPort: number;
  readonly upstreamPort: number;
  /** Loopback ports of servers that refuse connections, or accept and never answer. */
  readonly deadPorts: readonly number[];
}

export function renderSidecarConfig(input: SidecarConfigInput): string {
  const body: SidecarConfigBody = {
    version: 'v1alpha1',
    requires: [],
    binding: { namespace: 'default', name: 'bench' },
    identity: { tenant: 'default', user: { type: 'Static', id: 'bench' } },
    listeners: { agentPort: input.agentPort },
    servers: [
      serverConfig('up', input.upstreamPort),
      ...input.deadPorts.map((port, index) => serverConfig(`dead-${index}`, port)),
    ],
    drain: { timeoutMs: 1000 },
    telemetry: { logLevel: 'info' },
  };
  const { text } = encodeSidecarConfig(body);
  const verdict = checkSidecarConfig(JSON.parse(text), { development: true });
  if (verdict.kind !== 'ok')
    throw new Error(`the sidecar's config is not valid: ${JSON.stringify(verdict)}`);
  return text;
}

function serverConfig(alias: string, port: number): ServerConfig {
  const endpoint = `http://127.0.0.1:${port}/mcp`;
  return {
    alias,
    namespace: 'default',
    name: alias,
    endpoint,
    transport: 'StreamableHTTP',
    resource: endpoint,
    protocol: { era: 'Auto', versions: [...PROTOCOL_VERSIONS] },
    egress: { allowedHosts: ['127.0.0.1'], allowedPorts: [port], inClusterExceptions: [] },
    authorization: { type: 'None' },
    tools: { allow: [['*']], trustReadOnlyHint: false, overrides: [] },
    limits: {
      // More than the 32 callers, so that no call of the bench waits for a permit.
      maxConcurrency: 64,
      queueSize: 256,
      queueTimeoutMs: 5000,
      connectTimeoutMs: 5000,
      requestTimeoutMs: 30_000,
      streamReadTimeoutMs: 300_000,
      maxRequestBytes: 4_194_304,
      maxResponseBytes: 4_194_304,
      maxInputRounds: 10,
      maxRetries: 2,
      terminateOnClose: true,
    },
    cache: { defaultTtlMs: 3_600_000 },
    priority: 0,
  };
}
