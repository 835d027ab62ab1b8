// Objects and a rendered config that every check accepts; the tables of bad ones change one thing
// in them.

import { CONFIG_VERSION, PROTOCOL_VERSIONS } from '#core/config/sidecar-config.ts';
import type { SidecarConfigBody } from '#core/config/sidecar-config.ts';

export const GOOD_SERVER = {
  apiVersion: 'fairlead.dev/v1alpha1',
  kind: 'McpServer',
  metadata: { name: 'issues', namespace: 'default' },
  spec: {
    endpoint: 'https://mcp.example.com/mcp',
    egress: {
      allowedHosts: ['mcp.example.com', '*.cluster.example'],
      allowedPorts: [443],
      inClusterExceptions: [
        { host: 'mcp.cluster.example', cidrs: ['10.0.0.0/24', 'fd00::/64'], ports: [8443] },
      ],
    },
    tools: {
      allow: ['get_*', 'create_issue'],
      overrides: [{ name: 'create_issue', effect: 'Write' }],
    },
  },
} as const;

export const GOOD_OAUTH_SERVER = {
  ...GOOD_SERVER,
  metadata: { name: 'tracker', namespace: 'default' },
  spec: {
    ...GOOD_SERVER.spec,
    egress: { ...GOOD_SERVER.spec.egress, issuers: ['https://login.example.com/tenant'] },
    authorization: {
      type: 'OAuth',
      oauth: {
        resource: 'https://mcp.example.com/mcp',
        issuer: 'https://login.example.com/tenant',
        client: { type: 'Preregistered', id: 'fairlead' },
        redirectUri: 'https://console.example.com/callback',
        scopes: ['issues:read', 'issues:write'],
      },
    },
  },
} as const;

export const GOOD_BINDING = {
  apiVersion: 'fairlead.dev/v1alpha1',
  kind: 'McpBinding',
  metadata: { name: 'agent', namespace: 'default' },
  spec: {
    workload: { matchLabels: { app: 'agent' } },
    user: { type: 'Static', static: { id: 'robot@example.com' } },
    servers: [
      { name: 'issues' },
      { name: 'a-server-whose-name-is-long', namespace: 'platform', alias: 'long' },
    ],
  },
} as const;

/** What GOOD_BINDING and GOOD_SERVER become for the sidecar, without the revision. */
export const GOOD_CONFIG: SidecarConfigBody = {
  version: CONFIG_VERSION,
  requires: [],
  binding: { namespace: 'default', name: 'agent' },
  identity: { tenant: 'default', user: { type: 'Static', id: 'robot@example.com' } },
  listeners: { agentPort: 7317 },
  servers: [configServer('issues'), configServer('other')],
  drain: { timeoutMs: 30_000 },
  telemetry: { logLevel: 'info' },
};

function configServer(alias: string): SidecarConfigBody['servers'][number] {
  return {
    alias,
    namespace: 'default',
    name: alias,
    endpoint: 'https://mcp.example.com/mcp',
    transport: 'StreamableHTTP',
    resource: 'https://mcp.example.com/mcp',
    protocol: { era: 'Auto', versions: [...PROTOCOL_VERSIONS] },
    egress: {
      allowedHosts: ['mcp.example.com', '*.cluster.example'],
      allowedPorts: [443],
      inClusterExceptions: [
        { host: 'mcp.cluster.example', cidrs: ['10.0.0.0/24', 'fd00::/64'], ports: [8443] },
      ],
    },
    authorization: { type: 'None' },
    tools: {
      allow: [['get_*', 'create_issue']],
      trustReadOnlyHint: false,
      overrides: [{ name: 'create_issue', effect: 'Write' }],
    },
    limits: {
      maxConcurrency: 8,
      queueSize: 128,
      queueTimeoutMs: 10_000,
      connectTimeoutMs: 5_000,
      requestTimeoutMs: 30_000,
      streamReadTimeoutMs: 300_000,
      maxRequestBytes: 4_194_304,
      maxResponseBytes: 16_777_216,
      maxInputRounds: 10,
      maxRetries: 2,
      terminateOnClose: true,
    },
    cache: { defaultTtlMs: 3_600_000 },
    priority: 0,
  };
}
