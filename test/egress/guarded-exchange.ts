// The product's client for control exchanges, opened in the world of one case.

import { systemClock } from '#core/clock.ts';
import type { Clock } from '#core/clock.ts';
import type { EgressDecision } from '#core/egress/egress-policy.ts';
import { createGuardedClient } from '#core/egress/guarded-client.ts';
import type { ExchangeOutcome, GuardedClient } from '#core/egress/guarded-client.ts';
import type { ResolveHost } from '#core/egress/pinned-lookup.ts';

import type { CaseWorld } from './case-world.ts';
import type { Verdict } from './observation.ts';

const CONNECT_TIMEOUT_MS = 10_000;

export interface OpenedClient extends AsyncDisposable {
  readonly client: GuardedClient;
  readonly decisions: readonly EgressDecision[];
}

export interface ClientParts {
  readonly resolve: ResolveHost;
  readonly clock?: Clock;
}

export function openClient(world: CaseWorld, { resolve, clock }: ClientParts): OpenedClient {
  const decisions: EgressDecision[] = [];
  const client = createGuardedClient({
    policy: world.policy,
    caBundle: world.caPem,
    clock: clock ?? systemClock,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    onDecision: (decision) => decisions.push(decision),
    openSocket: world.openSocket,
    resolve,
  });
  return { client, decisions, [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() };
}

/** A failure on the way is no allowance; its stage is that of the product's own record. */
export function verdictOf(outcome: ExchangeOutcome, { decisions }: OpenedClient): Verdict {
  switch (outcome.kind) {
    case 'response':
      return { expect: 'allow' };
    case 'denied':
      return {
        expect: 'deny',
        stage: outcome.stage,
        reason: outcome.reason,
        deniedAtHop: outcome.hop,
      };
    case 'failed':
      return {
        expect: 'deny',
        stage: outcome.wasSent
          ? 'document'
          : decisions.findLast((d) => d.verdict !== 'allow')?.stage,
        reason: `${outcome.code}: ${outcome.reason}`,
        deniedAtHop: outcome.hop,
      };
    default:
      return outcome satisfies never;
  }
}
