// URLs that a tool or an answer names. The product's own code lists the tool and reads the answer
// of a call, as it does for agents of both eras; whatever it asks for besides is seen by the
// listeners.

import { setTimeout as sleep } from 'node:timers/promises';

import { systemClock } from '#core/clock.ts';
import type { ServerConfig } from '#core/config/sidecar-config.ts';
import { createGuardedPool } from '#core/egress/guarded-pool.ts';
import { createLogger } from '#core/telemetry/log.ts';
import { presentTool } from '#sidecar/upstream/bridge-tools.ts';
import { sendControlRequest } from '#sidecar/upstream/control-request.ts';
import { Deadlines } from '#sidecar/upstream/deadlines.ts';
import { listTools } from '#sidecar/upstream/list-tools.ts';
import { envelope, modernHeaders } from '#sidecar/upstream/negotiate.ts';
import type { Side, UpstreamTarget } from '#sidecar/upstream/upstream-types.ts';
import { serverConfig } from '#test/support/sidecar-config.ts';

import { resolverOf } from './case-resolver.ts';
import type { CaseWorld } from './case-world.ts';
import { allowedUrl } from './connection-cases.ts';
import { jsonAnswer } from './loopback-world.ts';
import type { Verdict } from './observation.ts';

const SIDE: Side = {
  era: 'modern',
  protocolVersion: '2026-07-28',
  capabilities: { tools: {} },
  serverInfo: undefined,
};
/** Whoever fetches what a document names does it soon. */
const SETTLE_MS = 20;

export interface NamingDocument {
  readonly tool?: Readonly<Record<string, unknown>>;
  readonly content?: readonly unknown[];
}

export async function runNamedUrlCase(
  world: CaseWorld,
  { tool, content }: NamingDocument,
): Promise<Verdict> {
  const endpoint = new URL('/mcp', allowedUrl(world.policy));
  world.serve((_request, body) => {
    const { id } = JSON.parse(body) as { id: unknown };
    const result =
      tool === undefined
        ? { resultType: 'complete', content }
        : { resultType: 'complete', tools: [tool, completed(tool)] };
    return jsonAnswer({ jsonrpc: '2.0', id, result });
  });
  const target = targetOf(world, endpoint);
  await using _pool = target.pool;
  const isPassedOn = tool === undefined ? await call(target) : await list(target);
  await sleep(SETTLE_MS);
  const others = world.requests.filter(({ url }) => url !== endpoint.href);
  const names = namesUrls(tool ?? content);
  if (others.length > 0)
    return { expect: 'allow', reason: 'what the document names was requested' };
  if (names)
    return { expect: 'deny', stage: 'document', reason: 'nothing that it names was requested' };
  return isPassedOn
    ? { expect: 'allow' }
    : { expect: 'deny', stage: 'document', reason: 'not passed on' };
}

/** With what every tool must have, so that no other rule leaves it out. */
function completed(tool: Readonly<Record<string, unknown>>): unknown {
  const { inputSchema } = tool;
  const schema = typeof inputSchema === 'object' ? inputSchema : {};
  return { ...tool, name: 'completed', inputSchema: { ...schema, type: 'object' } };
}

async function list(target: UpstreamTarget): Promise<boolean> {
  const { tools } = await listTools(target, SIDE, undefined);
  const shown = tools.flatMap(({ definition }) => [
    presentTool(definition, 'modern', 'legacy'),
    presentTool(definition, 'modern', 'modern'),
  ]);
  return shown.length > 0;
}

async function call(target: UpstreamTarget): Promise<boolean> {
  const answer = await sendControlRequest(target, {
    method: 'tools/call',
    params: { name: 't', arguments: {}, _meta: envelope(SIDE.protocolVersion) },
    headers: modernHeaders(SIDE.protocolVersion, 'tools/call'),
    timeoutMs: 10_000,
  });
  return answer.kind === 'result';
}

/** JSON Schema 2020-12 section 8: these identify a schema, and locate nothing. */
const IDENTIFIERS = new Set(['$id', '$schema']);
const REFERENCES = new Set(['$ref', '$dynamicRef']);

/** Whether anything in it could be fetched: it has a scheme, or refers beyond the document. */
function namesUrls(value: unknown): boolean {
  if (typeof value === 'string') return URL.canParse(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, member]) => {
    if (IDENTIFIERS.has(name)) return false;
    const isReference = REFERENCES.has(name) && typeof member === 'string';
    return isReference ? !member.startsWith('#') : namesUrls(member);
  });
}

function targetOf(world: CaseWorld, endpoint: URL): UpstreamTarget {
  const { policy } = world;
  const egress: ServerConfig['egress'] = {
    allowedHosts: [...policy.allowedHosts],
    allowedPorts: [...policy.allowedPorts],
    inClusterExceptions: [],
  };
  const server = serverConfig('corpus', 443, { endpoint: endpoint.href, egress });
  const pool = createGuardedPool({
    origin: endpoint.origin,
    policy,
    connections: 1,
    keepAliveMs: 1000,
    connectTimeoutMs: server.limits.connectTimeoutMs,
    caBundle: world.caPem,
    openSocket: world.openSocket,
    resolve: resolverOf(),
  });
  return {
    server,
    pool,
    path: endpoint.pathname,
    clock: systemClock,
    deadlines: new Deadlines(systemClock),
    log: createLogger({ name: 'corpus', level: 'error', destination: { write: () => {} } }),
  };
}
