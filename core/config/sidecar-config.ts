// The rendered contract between operator and sidecar: the operator (or `fairlead dev`) writes it,
// the sidecar reads it, and nothing else connects the two. It never holds a credential, and
// nothing in it depends on who rendered it: equal YAML gives equal bytes.
//
// Compatibility: unknown fields are ignored, so operator N serves sidecar N-1; a restriction that
// an older sidecar must not overlook is named in `requires`, and an unknown name is a rejection.

import { createHash } from 'node:crypto';

import { z } from 'zod';

import { CIDR_PATTERN, isCidr } from '#core/egress/cidr-text.ts';
import {
  HOST_RULE_MESSAGES,
  HOST_RULE_PATTERN,
  hostRuleFault,
  isHostListed,
  isPortListed,
} from '#core/egress/host-rule.ts';

import { limitsSchema } from './limits-schema.ts';
import { proxySchema } from './proxy-schema.ts';
import { checkRemoteUrl } from './remote-url.ts';

export const CONFIG_VERSION = 'v1alpha1';
export const CONFIG_FILE = 'config.json';
/** Features that this sidecar understands; later contract features are added here. */
export const KNOWN_FEATURES: readonly string[] = ['egress-proxy'];
/** A ConfigMap holds 1 MiB; names, labels and managed fields need the rest. */
export const MAX_CONFIG_BYTES = 1_000_000;

export const MODERN_VERSIONS = ['2026-07-28'] as const;
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26'] as const;
/** Newest first. */
export const PROTOCOL_VERSIONS = [...MODERN_VERSIONS, ...LEGACY_VERSIONS] as const;
export type ProtocolVersion = (typeof PROTOCOL_VERSIONS)[number];

export const ALIAS_PATTERN = '^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$';
/** Tool names as MCP recommends them, with `*` for any run of characters. */
export const TOOL_PATTERN_PATTERN = '^[A-Za-z0-9_./*-]{1,128}$';

const name = z.string().min(1).max(253);
const port = z.int().min(1).max(65_535);
const cidr = z
  .string()
  .max(43)
  .regex(new RegExp(CIDR_PATTERN))
  .refine(isCidr, 'must be an address range like "10.0.0.0/24" or "fd00::/64"');

const egressSchema = z.object({
  allowedHosts: z
    .array(z.string().max(253).regex(new RegExp(HOST_RULE_PATTERN)))
    .min(1)
    .max(64),
  allowedPorts: z.array(port).min(1).max(16),
  /** Private addresses that one named host may have: all three must match. */
  inClusterExceptions: z
    .array(
      z.object({
        host: z.string().max(253).regex(new RegExp(HOST_RULE_PATTERN)),
        cidrs: z.array(cidr).min(1).max(16),
        ports: z.array(port).min(1).max(16),
      }),
    )
    .max(32),
  /** PEM certificates, trusted besides the system's roots. */
  caBundle: z.string().max(524_288).optional(),
});

const toolPatterns = z
  .array(z.string().regex(new RegExp(TOOL_PATTERN_PATTERN)))
  .min(1)
  .max(512);

const toolsSchema = z.object({
  /** A tool is served when every list has a matching pattern (the server's list, then the binding's). */
  allow: z.array(toolPatterns).min(1).max(4),
  trustReadOnlyHint: z.boolean(),
  /** Effects that the platform team states; a hint of the server can only tighten. */
  overrides: z
    .array(
      z.object({
        name: z.string().min(1).max(128),
        effect: z.enum(['ReadOnly', 'Write', 'Destructive']),
      }),
    )
    .max(512),
});

export const serverConfigSchema = z.object({
  alias: z.string().regex(new RegExp(ALIAS_PATTERN)),
  namespace: name,
  name,
  endpoint: z.string().max(2048),
  transport: z.literal('StreamableHTTP'),
  /** RFC 8707 resource, byte for byte; the endpoint itself when there is no authorization. */
  resource: z.string().max(2048),
  protocol: z.object({
    era: z.enum(['Auto', 'Modern', 'Legacy']),
    versions: z.array(z.enum(PROTOCOL_VERSIONS)).min(1).max(8),
  }),
  egress: egressSchema,
  authorization: z.object({ type: z.literal('None') }),
  tools: toolsSchema,
  limits: limitsSchema,
  cache: z.object({ defaultTtlMs: z.int().min(0).max(31_536_000_000) }),
  priority: z.int().min(-1000).max(1000),
});

/** Published as docs/schemas/sidecar-config.json. */
export const sidecarConfigSchema = z.object({
  version: z.literal(CONFIG_VERSION),
  revision: z.string().regex(/^[0-9a-f]{64}$/),
  requires: z.array(z.string().max(128)).max(64),
  binding: z.object({ namespace: name, name }),
  identity: z.object({
    tenant: name,
    user: z.object({
      type: z.literal('Static'),
      id: z.string().regex(/^[^\u0000-\u001f\u007f]{1,256}$/),
    }),
  }),
  listeners: z.object({ agentPort: port }),
  /** Absent means `Direct`. */
  proxy: proxySchema.optional(),
  servers: z.array(serverConfigSchema).max(64),
  drain: z.object({ timeoutMs: z.int().min(0).max(3_600_000) }),
  telemetry: z.object({ logLevel: z.enum(['debug', 'info', 'warn', 'error']) }),
});

export type SidecarConfig = z.infer<typeof sidecarConfigSchema>;
export type ServerConfig = z.infer<typeof serverConfigSchema>;
export type EgressConfig = ServerConfig['egress'];
export type SidecarConfigBody = Omit<SidecarConfig, 'revision'>;

/** Path like `servers[0].limits.maxConcurrency`, and what must be there. */
export interface ConfigIssue {
  readonly path: string;
  readonly message: string;
}

export type ConfigVerdict =
  | { readonly kind: 'ok'; readonly config: SidecarConfig }
  | { readonly kind: 'invalid'; readonly issues: readonly ConfigIssue[] }
  | { readonly kind: 'unsupported'; readonly features: readonly string[] };

export interface ConfigRules {
  /** A start option of the sidecar (`fairlead dev`), never part of the config. */
  readonly development: boolean;
}

/** Judges a parsed config file. Sizes, forms, hosts, references between fields, revision. */
export function checkSidecarConfig(input: unknown, rules: ConfigRules): ConfigVerdict {
  // Asked first: what a newer feature brought along need not fit this version's schema.
  const unknownFeatures = featuresOf(input).filter((feature) => !KNOWN_FEATURES.includes(feature));
  if (unknownFeatures.length > 0) return { kind: 'unsupported', features: unknownFeatures };
  const parsed = sidecarConfigSchema.safeParse(input);
  if (!parsed.success) {
    return {
      kind: 'invalid',
      issues: parsed.error.issues.map((issue) => ({
        path: formatPath(issue.path),
        message: issue.message,
      })),
    };
  }
  const config = parsed.data;
  const issues = [...checkServers(config, rules), ...checkRevision(input, config.revision)];
  return issues.length > 0 ? { kind: 'invalid', issues } : { kind: 'ok', config };
}

function featuresOf(input: unknown): readonly string[] {
  const parsed = z.object({ requires: z.array(z.string().max(128)).max(64) }).safeParse(input);
  return parsed.success ? parsed.data.requires : [];
}

function* checkServers(config: SidecarConfig, rules: ConfigRules): Generator<ConfigIssue> {
  const seen = new Set<string>();
  for (const [index, server] of config.servers.entries()) {
    const at = `servers[${index}]`;
    if (seen.has(server.alias))
      yield { path: `${at}.alias`, message: `alias ${JSON.stringify(server.alias)} is used twice` };
    seen.add(server.alias);
    yield* checkHostRules(server.egress, `${at}.egress`, rules);
    for (const field of ['endpoint', 'resource'] as const) {
      const message = checkListedUrl(server[field], server.egress, rules);
      if (message !== undefined) yield { path: `${at}.${field}`, message };
    }
  }
}

function* checkHostRules(
  egress: EgressConfig,
  at: string,
  rules: ConfigRules,
): Generator<ConfigIssue> {
  const listed = egress.allowedHosts.map((host, index) => ({
    host,
    place: 'allowed-host' as const,
    path: `${at}.allowedHosts[${index}]`,
  }));
  const excepted = egress.inClusterExceptions.map(({ host }, index) => ({
    host,
    place: 'exception' as const,
    path: `${at}.inClusterExceptions[${index}].host`,
  }));
  const exceptionHosts = egress.inClusterExceptions.map(({ host }) => host);
  for (const { host, place, path } of [...listed, ...excepted]) {
    const fault = hostRuleFault(host, { ...rules, place, exceptionHosts });
    if (fault !== undefined) yield { path, message: HOST_RULE_MESSAGES[fault] };
  }
}

/** The form, the host and the port of a configured URL; undefined when all are in order. */
export function checkListedUrl(
  url: string,
  egress: Pick<EgressConfig, 'allowedHosts' | 'allowedPorts' | 'inClusterExceptions'>,
  rules: ConfigRules,
): string | undefined {
  const verdict = checkRemoteUrl(url, rules);
  if (verdict.kind === 'bad') return verdict.message;
  if (!isHostListed(egress.allowedHosts, verdict.host))
    return 'must have a host that egress.allowedHosts lists';
  if (!isPortListed(egress, verdict.host, verdict.port))
    return 'must have a port that egress.allowedPorts, or the in-cluster exception of its host, lists';
  return undefined;
}

function* checkRevision(input: unknown, revision: string): Generator<ConfigIssue> {
  if (configRevision(input) !== revision) {
    yield {
      path: 'revision',
      message: 'does not match the content; the file was edited by hand or is half written',
    };
  }
}

export function formatPath(path: readonly PropertyKey[]): string {
  let text = '';
  for (const part of path)
    text +=
      typeof part === 'number' ? `[${part}]` : text === '' ? String(part) : `.${String(part)}`;
  return text;
}

/** SHA-256, hex, over the canonical JSON of everything but `revision`. */
export function configRevision(input: unknown): string {
  const { revision: _, ...rest } = input as Record<string, unknown>;
  return createHash('sha256').update(canonicalJson(rest)).digest('hex');
}

/** Sorted keys, no white space, no undefined members: equal values give equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(sortKeys(value));
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, sortKeys(member)]));
}

/** The exact bytes of `config.json`: sorted keys, two spaces, a final newline. */
export function encodeSidecarConfig(body: SidecarConfigBody): {
  readonly revision: string;
  readonly text: string;
} {
  const revision = configRevision(body);
  return { revision, text: `${JSON.stringify(sortKeys({ ...body, revision }), null, 2)}\n` };
}
