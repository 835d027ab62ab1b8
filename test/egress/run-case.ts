// Runs one case in a world of its own. Product code is given the input, the policy and the
// resolver, never what is expected; what it does is compared afterwards.

import { compareCase } from './compare-case.ts';
import type { CaseWorld } from './case-world.ts';
import { runAddressCase, runDnsCase, runMetadataCase, runUrlCase } from './connection-cases.ts';
import type { CaseGiven, CorpusEntry, EgressCorpus } from './corpus-file.ts';
import { runDocumentCase } from './document-cases.ts';
import { runHostRuleCase } from './host-rule-cases.ts';
import type { IssuedCertificates } from './issued-certificates.ts';
import { LoopbackWorld } from './loopback-world.ts';
import { runOauthCase } from './oauth-cases.ts';
import { runRedirectCase } from './redirect-cases.ts';
import type { SeenRequest, Verdict } from './observation.ts';

export interface CaseResult {
  readonly id: string;
  readonly kind: string;
  readonly policy: string | null;
  /** Empty when the case passed. */
  readonly differences: readonly string[];
  readonly expected?: string;
  readonly got?: string;
  readonly requests: readonly SeenRequest[];
}

type RunCase = (world: CaseWorld, given: CaseGiven) => Promise<Verdict>;

/** By the kinds of the file. */
const RUNNERS: Readonly<Record<string, RunCase>> = {
  url: runUrlCase,
  ip: runAddressCase,
  metadata: runMetadataCase,
  dns: runDnsCase,
  redirect: runRedirectCase,
  oauth: runOauthCase,
  document: runDocumentCase,
};

/** A case that hangs is a failure too. */
const CASE_TIMEOUT_MS = 20_000;

export interface CaseTools {
  readonly corpus: EgressCorpus;
  readonly certificates: IssuedCertificates;
}

export async function runEntry(entry: CorpusEntry, tools: CaseTools): Promise<CaseResult> {
  const { id } = entry;
  if (entry.kind === 'unreadable')
    return { id, kind: '?', policy: null, differences: [entry.fault], requests: [] };
  const { given, expected } = entry;
  const common = {
    id,
    kind: given.kind,
    policy: given.policy,
    expected: outcomeText(expected.expect, expected.stage),
  };
  await using loopback = await LoopbackWorld.open(tools.certificates);
  const { requests, dialled, faults } = loopback;
  try {
    const verdict = await withinTime(judge(given, loopback, tools));
    const got = outcomeText(verdict.expect, verdict.stage, verdict.reason);
    const seen = { verdict, requests, dialled, faults };
    return { ...common, got, requests, differences: compareCase(given, expected, seen) };
  } catch (error) {
    return { ...common, requests, differences: [`it could not be run: ${String(error)}`] };
  }
}

function judge(given: CaseGiven, loopback: LoopbackWorld, tools: CaseTools): Promise<Verdict> {
  if (given.kind === 'policy') return Promise.resolve(runHostRuleCase(given));
  const run = Object.hasOwn(RUNNERS, given.kind) ? RUNNERS[given.kind] : undefined;
  if (run === undefined) throw new TypeError(`unknown kind ${JSON.stringify(given.kind)}`);
  const { openSocket, dialled, requests } = loopback;
  const world: CaseWorld = {
    openSocket,
    dialled,
    requests,
    policy: tools.corpus.policyOf(given),
    caPem: tools.certificates.caPem,
    serve: (answer) => {
      loopback.answer = answer;
    },
  };
  return run(world, given);
}

async function withinTime<T>(work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error('it took too long')), CASE_TIMEOUT_MS);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function outcomeText(expect: string, stage?: string, reason?: string): string {
  const detail = [stage, reason].filter((part) => part !== undefined).join(': ');
  return detail === '' ? expect : `${expect} (${detail})`;
}
