// Asks the resolver for one host as the guard's own lookup does, and keeps what the guard forgets:
// every address that came back. The verdict is the guard's; nothing is connected to.

import type { Clock } from '#core/clock.ts';
import type { EgressDecision, EgressPolicy } from '#core/egress/egress-policy.ts';
import { createPinnedLookup, lookupTimeoutMs } from '#core/egress/pinned-lookup.ts';
import type { ResolveHost } from '#core/egress/pinned-lookup.ts';

import { ChildResolver } from './child-resolver.ts';

/** A person waits for it. */
const LONGEST_LOOKUP_MS = 10_000;

export interface HostQuestion {
  readonly policy: EgressPolicy;
  readonly host: string;
  readonly port: number;
  readonly connectTimeoutMs: number;
  readonly clock: Clock;
  /** In place of the system's resolver, for tests. */
  readonly resolve?: ResolveHost | undefined;
}

export interface HostAnswer {
  /** As they came; empty when the resolver failed. */
  readonly addresses: readonly string[];
  /** What speaks against a connection; undefined when it would be attempted. */
  readonly refusal: EgressDecision | undefined;
}

export async function lookUpHost(question: HostQuestion): Promise<HostAnswer> {
  if (question.resolve !== undefined) return lookUpWith(question.resolve, question);
  using resolver = await ChildResolver.start();
  // Awaited here: the resolver goes away when this function ends.
  return await lookUpWith(resolver.resolve, question);
}

function lookUpWith(resolve: ResolveHost, question: HostQuestion): Promise<HostAnswer> {
  const { policy, host, port, clock, connectTimeoutMs } = question;
  let addresses: readonly string[] = [];
  let refusal: EgressDecision | undefined;
  const lookup = createPinnedLookup({
    policy,
    port,
    clock,
    timeoutMs: Math.min(lookupTimeoutMs(connectTimeoutMs), LONGEST_LOOKUP_MS),
    onDecision: (record) => {
      refusal = record;
    },
    resolve: (name, options, callback) =>
      resolve(name, options, (error, answers) => {
        // Before the guard judges it, and never after: a late answer decides nothing.
        if (error === null && refusal === undefined)
          addresses = answers.map(({ address }) => address);
        callback(error, answers);
      }),
  });
  return new Promise((settle) => {
    lookup(host, () => settle({ addresses, refusal }));
  });
}
