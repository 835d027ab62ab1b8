// From the gathered world to what should be: the config of the binding's sidecar, and what to say
// about it. Pure. The operator and `fairlead dev`, `validate` and `render` all call this, so they
// cannot differ. A server that may not be used is left out, never let in half.

import { ERRORS, conditionReason } from '#core/errors.ts';
import { tenantId } from '#core/identity/ids.ts';
import { effectiveAlias } from '#crds/mcp-binding.ts';
import type { McpBinding, McpServer } from '#crds/validate-object.ts';
import { type Verdict, no, yes } from '#operator/reconcile/conditions.ts';
import type { JudgedServer } from '#operator/reconcile/mcp-server/judge-server.ts';
import {
  type IncludedServer,
  type RenderedConfig,
  renderSidecarConfig,
} from '#operator/render/sidecar-config.ts';

export const TENANT_LABEL = 'fairlead.dev/tenant';
export type Labels = Readonly<Record<string, string>>;

export interface BindingWorld {
  readonly binding: McpBinding;
  readonly namespace: string;
  /** Labels of the binding's namespace. */
  readonly namespaceLabels: Labels;
  /** Undefined when there is no such McpServer. */
  readonly findServer: (namespace: string, name: string) => JudgedServer | undefined;
}

export interface PlannedServer {
  readonly alias: string;
  readonly namespace: string;
  readonly name: string;
  readonly state: 'Included' | 'Excluded';
  readonly reason: string;
  readonly message?: string;
}

export interface Stray {
  readonly alias: string;
  /** Index in spec.servers. */
  readonly index: number;
  readonly tool: string;
}

export interface BindingPlan {
  readonly config: RenderedConfig;
  readonly servers: readonly PlannedServer[];
  readonly resolvedRefs: Verdict;
  /** Names in the binding's tools.allow that the server's own list does not allow. */
  readonly strays: readonly Stray[];
}

export function planBinding(world: BindingWorld): BindingPlan {
  const { binding, namespace, namespaceLabels } = world;
  const resolved = binding.spec.servers.map((entry, index) => resolveServer(world, entry, index));
  const config = renderSidecarConfig({
    binding: { namespace, name: binding.metadata.name, spec: binding.spec },
    tenant: tenantId(namespaceLabels[TENANT_LABEL] ?? namespace),
    servers: resolved.flatMap(({ included }) => included ?? []),
  });
  const servers = resolved.map(({ planned }) => planned);
  return {
    config,
    servers,
    resolvedRefs: judgeRefs(servers),
    strays: resolved.flatMap(({ strays }) => strays),
  };
}

interface Resolved {
  readonly planned: PlannedServer;
  readonly included: IncludedServer | undefined;
  readonly strays: readonly Stray[];
}

type Entry = McpBinding['spec']['servers'][number];

function resolveServer(world: BindingWorld, entry: Entry, index: number): Resolved {
  const namespace = entry.namespace ?? world.namespace;
  const identity = { alias: effectiveAlias(entry), namespace, name: entry.name };
  const excluded = (reason: string, message: string): Resolved => ({
    planned: { ...identity, state: 'Excluded', reason, message },
    included: undefined,
    strays: [],
  });
  const judged = world.findServer(namespace, entry.name);
  const label = `McpServer ${namespace}/${entry.name}`;
  if (judged === undefined)
    return excluded(conditionReason('SERVER_NOT_FOUND'), `${label} does not exist.`);
  // Who may not use a server learns nothing else about it.
  if (judged.server !== undefined && !isNamespaceAllowed(judged.server, namespace, world)) {
    return excluded(
      conditionReason('REF_NOT_PERMITTED'),
      `${label} does not allow namespace ${world.namespace}.`,
    );
  }
  if (judged.usable === undefined) {
    const why = judged.accepted.status === 'True' ? judged.resolvedRefs : judged.accepted;
    return excluded(
      conditionReason('SERVER_NOT_ACCEPTED'),
      `${label} is not usable: ${why.reason}. See its conditions.`,
    );
  }
  const { server, caBundle } = judged.usable;
  if (server.spec.suspend) return excluded('Suspended', `${label} is suspended.`);
  return {
    planned: { ...identity, state: 'Included', reason: 'Included' },
    included: { entry, namespace, spec: server.spec, caBundle },
    strays: findStrays(entry, server, index),
  };
}

export function isNamespaceAllowed(
  server: McpServer,
  serverNamespace: string,
  world: Pick<BindingWorld, 'namespace' | 'namespaceLabels'>,
): boolean {
  const { from, selector } = server.spec.allowedNamespaces;
  switch (from) {
    case 'Same':
      return serverNamespace === world.namespace;
    case 'All':
      return true;
    case 'Selector':
      return (
        selector !== undefined &&
        Object.entries(selector.matchLabels).every(
          ([key, value]) => world.namespaceLabels[key] === value,
        )
      );
    default:
      return from satisfies never;
  }
}

/** Only plain names can be judged without the server's list. */
function findStrays(entry: Entry, server: McpServer, index: number): Stray[] {
  const names = (entry.tools?.allow ?? []).filter((pattern) => !pattern.includes('*'));
  const isAllowed = (name: string): boolean =>
    server.spec.tools.allow.some((pattern) => matchesGlob(pattern, name));
  return names
    .filter((name) => !isAllowed(name))
    .map((tool) => ({ alias: effectiveAlias(entry), index, tool }));
}

function matchesGlob(pattern: string, name: string): boolean {
  const source = pattern
    .split('*')
    .map((part) => part.replaceAll(/[.\\+?^${}()|[\]/]/g, String.raw`\$&`));
  return new RegExp(`^${source.join('.*')}$`).test(name);
}

/** A suspended server is no fault of the reference. */
function judgeRefs(servers: readonly PlannedServer[]): Verdict {
  const faults = servers.filter(
    ({ state, reason }) => state === 'Excluded' && reason !== 'Suspended',
  );
  const [first] = faults;
  if (first === undefined) return yes('ResolvedRefs', 'Every server exists and may be used.');
  return no(first.reason, faults.map(({ message }) => message).join(' '));
}

/** Programmed of a config that cannot be written. */
export function judgeSize({ bytes }: Extract<RenderedConfig, { kind: 'too-large' }>): Verdict {
  return no(
    conditionReason('CONFIG_TOO_LARGE'),
    `The config would have ${String(bytes)} bytes. The last good one stays in use. ${ERRORS.CONFIG_TOO_LARGE.next}`,
  );
}
