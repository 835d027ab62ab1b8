// Renders the config of one binding's sidecar. Pure, and blind to everything that only a cluster
// knows (uids, generations, times): equal YAML gives equal bytes, whoever renders it.

import {
  CONFIG_VERSION,
  MAX_CONFIG_BYTES,
  type ServerConfig,
  type SidecarConfigBody,
  encodeSidecarConfig,
} from '#core/config/sidecar-config.ts';
import type { ServerLimits } from '#core/config/limits-schema.ts';
import type { BindingLimitsSpec, ServerLimitsSpec } from '#crds/call-limits.ts';
import { durationMs } from '#crds/durations.ts';
import { type McpBindingSpec, effectiveAlias } from '#crds/mcp-binding.ts';
import type { McpServerSpec } from '#crds/mcp-server.ts';

/** A server that the binding names and may use. */
export interface IncludedServer {
  readonly entry: McpBindingSpec['servers'][number];
  readonly namespace: string;
  readonly spec: McpServerSpec;
  readonly caBundle: string | undefined;
}

export interface RenderInput {
  readonly binding: {
    readonly namespace: string;
    readonly name: string;
    readonly spec: McpBindingSpec;
  };
  readonly tenant: string;
  readonly servers: readonly IncludedServer[];
}

export type RenderedConfig =
  | { readonly kind: 'ok'; readonly revision: string; readonly text: string }
  | { readonly kind: 'too-large'; readonly bytes: number };

export function renderSidecarConfig(input: RenderInput): RenderedConfig {
  const { revision, text } = encodeSidecarConfig(configBody(input));
  const bytes = Buffer.byteLength(text);
  return bytes > MAX_CONFIG_BYTES ? { kind: 'too-large', bytes } : { kind: 'ok', revision, text };
}

function configBody({ binding, tenant, servers }: RenderInput): SidecarConfigBody {
  const { spec } = binding;
  return {
    version: CONFIG_VERSION,
    requires: [],
    binding: { namespace: binding.namespace, name: binding.name },
    identity: { tenant, user: { type: 'Static', id: spec.user.static.id } },
    listeners: { agentPort: spec.sidecar.port },
    servers: servers
      .filter((server) => !server.spec.suspend)
      .map(renderServer)
      .toSorted(byPriority),
    drain: { timeoutMs: durationMs(spec.sidecar.drainTimeout) },
    telemetry: { logLevel: spec.sidecar.logLevel },
  };
}

function byPriority(a: ServerConfig, b: ServerConfig): number {
  return b.priority - a.priority || (a.alias < b.alias ? -1 : 1);
}

function renderServer({ entry, namespace, spec, caBundle }: IncludedServer): ServerConfig {
  const { egress, tools } = spec;
  return {
    alias: effectiveAlias(entry),
    namespace,
    name: entry.name,
    endpoint: spec.endpoint,
    transport: spec.transport,
    resource: spec.authorization.oauth?.resource ?? spec.endpoint,
    protocol: { era: spec.protocol.era, versions: [...spec.protocol.versions] },
    egress: {
      allowedHosts: [...egress.allowedHosts],
      allowedPorts: [...egress.allowedPorts],
      inClusterExceptions: egress.inClusterExceptions.map(({ host, cidrs, ports }) => ({
        host,
        cidrs: [...cidrs],
        ports: [...ports],
      })),
      ...(caBundle === undefined ? {} : { caBundle }),
    },
    authorization: { type: 'None' },
    tools: {
      allow:
        entry.tools === undefined ? [[...tools.allow]] : [[...tools.allow], [...entry.tools.allow]],
      trustReadOnlyHint: tools.trustReadOnlyHint,
      overrides: tools.overrides.map(({ name, effect }) => ({ name, effect })),
    },
    limits: renderLimits(spec.limits, entry.limits ?? {}),
    cache: { defaultTtlMs: durationMs(spec.cache.defaultTtl) },
    priority: spec.priority,
  };
}

function renderLimits(server: ServerLimitsSpec, binding: BindingLimitsSpec): ServerLimits {
  const count = (
    key:
      | 'maxConcurrency'
      | 'queueSize'
      | 'maxRequestBytes'
      | 'maxResponseBytes'
      | 'maxInputRounds'
      | 'maxRetries',
  ): number => Math.min(server[key], binding[key] ?? server[key]);
  const timeoutMs = (
    key: 'queueTimeout' | 'connectTimeout' | 'requestTimeout' | 'streamReadTimeout',
  ): number => Math.min(durationMs(server[key]), durationMs(binding[key] ?? server[key]));
  const streamReadTimeoutMs = timeoutMs('streamReadTimeout');
  return {
    maxConcurrency: count('maxConcurrency'),
    queueSize: count('queueSize'),
    queueTimeoutMs: timeoutMs('queueTimeout'),
    connectTimeoutMs: timeoutMs('connectTimeout'),
    // A binding that only lowers the stream's silence lowers the plain call's deadline with it.
    requestTimeoutMs: Math.min(timeoutMs('requestTimeout'), streamReadTimeoutMs),
    streamReadTimeoutMs,
    maxRequestBytes: count('maxRequestBytes'),
    maxResponseBytes: count('maxResponseBytes'),
    maxInputRounds: count('maxInputRounds'),
    maxRetries: count('maxRetries'),
    terminateOnClose: server.terminateOnClose,
  };
}
