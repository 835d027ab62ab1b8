// What the egress guard would say to one URL for the servers of one binding, step by step. Every
// verdict comes from the guard's own functions; here they are only put in a row and named. Asks the
// resolver when it is told to, and never connects. User information and queries are not repeated.

import type { Clock } from '#core/clock.ts';
import type { ServerConfig } from '#core/config/sidecar-config.ts';
import {
  bareHost,
  decideAddress,
  decideLiteral,
  decideUrl,
  judgeUrlSteps,
  portOf,
} from '#core/egress/decide-egress.ts';
import type {
  DenyReason,
  EgressPolicy,
  EgressStage,
  EgressVerdict,
  FailureReason,
} from '#core/egress/egress-policy.ts';
import type { ResolveHost } from '#core/egress/pinned-lookup.ts';

import { egressRemedy } from './egress-remedy.ts';
import { laterSteps } from './explain-later.ts';
import { lookUpHost } from './explain-lookup.ts';
import { urlStepNote } from './url-step-note.ts';

export type ExplainVerdict = 'allowed' | 'denied' | 'unknown';

export interface ExplainStep {
  readonly stage: EgressStage;
  readonly step: string;
  /** `not-asked`: --resolve was not given, or an earlier step denied. */
  readonly verdict: 'allow' | 'deny' | 'unknown' | 'not-asked';
  readonly reason: DenyReason | FailureReason | null;
  readonly detail: string | null;
  readonly address: string | null;
  readonly note: string | null;
}

export interface ParsedUrl {
  readonly scheme: string;
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** False when the text spells the host in another way, as `0x7f.1` does 127.0.0.1. */
  readonly isHostAsWritten: boolean;
}

export interface ExplainedServer {
  readonly alias: string;
  readonly namespace: string;
  readonly name: string;
  readonly endpoint: string;
  /** False: the policy is this server's, but its calls go to its endpoint's origin only. */
  readonly isEndpointOrigin: boolean;
  readonly verdict: ExplainVerdict;
  readonly stage: EgressStage;
  readonly reason: DenyReason | FailureReason | 'ok';
  readonly detail: string | null;
  readonly remedy: string | null;
  readonly steps: readonly ExplainStep[];
}

export interface ExplainOptions {
  readonly isDevelopment: boolean;
  readonly isResolving: boolean;
  readonly clock: Clock;
  /** In place of the system's resolver, for tests. */
  readonly resolve?: ResolveHost | undefined;
}

export function describeUrl(url: URL, text: string): ParsedUrl {
  return {
    scheme: url.protocol.slice(0, -1),
    host: bareHost(url),
    port: portOf(url),
    path: url.pathname,
    isHostAsWritten: text.includes(url.hostname),
  };
}

/** The servers whose endpoint has this origin, for only their calls go there; else all of them. */
export function serversFor(servers: readonly ServerConfig[], url: URL): readonly ServerConfig[] {
  const own = servers.filter(({ endpoint }) => isOriginOf(endpoint, url));
  return own.length > 0 ? own : servers;
}

function isOriginOf(endpoint: string, url: URL): boolean {
  return new URL(endpoint).origin === url.origin;
}

/**
 * Whose verdict is the answer: it is enough that one server may go there, and of those that may not,
 * the one that came furthest is the nearest to change. Takes one server at least.
 */
export function decisiveServer(servers: readonly ExplainedServer[]): ExplainedServer {
  return servers.reduce((best, server) => (rank(server) > rank(best) ? server : best));
}

function rank({ verdict, steps }: ExplainedServer): number {
  if (verdict === 'allowed') return Number.POSITIVE_INFINITY;
  if (verdict === 'unknown') return Number.MAX_SAFE_INTEGER;
  return steps.findIndex((step) => step.verdict === 'deny');
}

export async function explainServer(
  server: ServerConfig,
  url: URL,
  options: ExplainOptions,
): Promise<ExplainedServer> {
  const policy: EgressPolicy = { ...server.egress, development: options.isDevelopment };
  const urlVerdict = decideUrl(policy, url);
  const isUrlDenied = urlVerdict.kind === 'deny' && urlVerdict.stage === 'url-policy';
  const address = isUrlDenied
    ? { steps: [notAsked('not asked: the URL is denied')], outcome: outcomeOf(urlVerdict) }
    : await explainAddress({ server, policy, url, options });
  const { outcome } = address;
  return {
    alias: server.alias,
    namespace: server.namespace,
    name: server.name,
    endpoint: server.endpoint,
    isEndpointOrigin: isOriginOf(server.endpoint, url),
    ...outcome,
    remedy: remedyOf(outcome, { server, url, options }),
    steps: [
      ...urlSteps(policy, url),
      ...address.steps,
      ...(outcome.verdict === 'denied' ? [] : laterSteps(policy, url)),
    ],
  };
}

type Outcome = Pick<ExplainedServer, 'verdict' | 'stage' | 'reason' | 'detail'>;

interface AddressReport {
  readonly steps: readonly ExplainStep[];
  readonly outcome: Outcome;
}

interface ServerQuestion {
  readonly server: ServerConfig;
  readonly policy: EgressPolicy;
  readonly url: URL;
  readonly options: ExplainOptions;
}

function urlSteps(policy: EgressPolicy, url: URL): ExplainStep[] {
  return [...judgeUrlSteps(policy, url)].map(({ name, fault }) => ({
    stage: 'url-policy',
    step: name,
    verdict: fault === undefined ? 'allow' : 'deny',
    reason: fault ?? null,
    detail: null,
    address: null,
    note: urlStepNote(name, { policy, url, isDenied: fault !== undefined }),
  }));
}

async function explainAddress(question: ServerQuestion): Promise<AddressReport> {
  const { policy, url, options } = question;
  const host = bareHost(url);
  const literal = decideLiteral(policy, host, portOf(url));
  if (literal !== undefined)
    return {
      steps: [addressStep(host, literal, 'ip-literal')],
      outcome: outcomeOf(literal, 'ip-literal'),
    };
  if (!options.isResolving)
    return {
      steps: [notAsked('not resolved (--resolve asks the resolver)')],
      outcome: outcomeOf({ kind: 'allow' }),
    };
  return resolveAddresses(question);
}

async function resolveAddresses({
  server,
  policy,
  url,
  options,
}: ServerQuestion): Promise<AddressReport> {
  const host = bareHost(url);
  const port = portOf(url);
  const { connectTimeoutMs } = server.limits;
  const { clock, resolve } = options;
  const answer = await lookUpHost({ policy, host, port, connectTimeoutMs, clock, resolve });
  const { refusal } = answer;
  const steps = answer.addresses.map((address) =>
    addressStep(
      address,
      decideAddress(policy, { host, port, address, stage: 'resolve' }),
      'resolve',
    ),
  );
  if (refusal === undefined) return { steps, outcome: outcomeOf({ kind: 'allow' }, 'resolve') };
  const { stage, reason, detail = null } = refusal;
  const isDenied = refusal.verdict === 'deny';
  const outcome: Outcome = { verdict: isDenied ? 'denied' : 'unknown', stage, reason, detail };
  if (steps.length > 0) return { steps, outcome };
  const word = reason === 'ok' ? null : reason;
  const verdict = isDenied ? 'deny' : 'unknown';
  return {
    steps: [{ stage, step: 'address', verdict, reason: word, detail, address: null, note: null }],
    outcome,
  };
}

function addressStep(address: string, verdict: EgressVerdict, stage: EgressStage): ExplainStep {
  const isDenied = verdict.kind === 'deny';
  return {
    stage,
    step: 'address',
    verdict: verdict.kind,
    reason: isDenied ? verdict.reason : null,
    detail: isDenied ? (verdict.detail ?? null) : null,
    address,
    note: null,
  };
}

function notAsked(note: string): ExplainStep {
  return {
    stage: 'resolve',
    step: 'address',
    verdict: 'not-asked',
    reason: null,
    detail: null,
    address: null,
    note,
  };
}

function outcomeOf(verdict: EgressVerdict, stage: EgressStage = 'url-policy'): Outcome {
  if (verdict.kind === 'allow') return { verdict: 'allowed', stage, reason: 'ok', detail: null };
  return {
    verdict: 'denied',
    stage: verdict.stage,
    reason: verdict.reason,
    detail: verdict.detail ?? null,
  };
}

function remedyOf(
  outcome: Outcome,
  { server, url, options }: Omit<ServerQuestion, 'policy'>,
): string | null {
  if (outcome.verdict !== 'denied') return null;
  return egressRemedy(outcome.reason, {
    server,
    isDevelopment: options.isDevelopment,
    detail: outcome.detail ?? undefined,
    hostname: url.hostname,
    port: portOf(url),
  });
}
