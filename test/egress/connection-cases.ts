// Cases about one URL, one address or a row of DNS answers: the product's own pool opens its own
// connections, and a request either arrives or does not.

import { isIP } from 'node:net';

import { z } from 'zod';

import { systemClock } from '#core/clock.ts';
import type { Clock } from '#core/clock.ts';
import { EgressError } from '#core/egress/egress-error.ts';
import type { EgressPolicy } from '#core/egress/egress-policy.ts';
import { createGuardedPool } from '#core/egress/guarded-pool.ts';
import type { GuardedPool } from '#core/egress/guarded-pool.ts';
import type { ResolveHost } from '#core/egress/pinned-lookup.ts';
import { exchange } from '#test/support/exchange-outcome.ts';

import { dnsAnswerSchema, resolverOf, scriptedResolver } from './case-resolver.ts';
import type { CaseGiven } from './corpus-file.ts';
import type { CaseWorld } from './case-world.ts';
import { openClient, verdictOf } from './guarded-exchange.ts';
import type { Verdict } from './observation.ts';
import { scaledClock } from './scaled-clock.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** For cases in which a resolver stays silent. */
const FAST = 40;
const NAME = 'name.example.com';
const ORDINALS = ['first', 'second', 'third', 'fourth', 'fifth'];

export async function runUrlCase(world: CaseWorld, given: CaseGiven): Promise<Verdict> {
  const text = z.string().parse(given.input);
  const url = URL.parse(text);
  if (url === null) return { expect: 'deny', stage: 'parse' };
  return reach(world, url, resolverOf(given.resolve));
}

/** The address as the answer to a lookup of a name that the policy allows. */
export async function runAddressCase(world: CaseWorld, given: CaseGiven): Promise<Verdict> {
  const address = z.string().parse(given.input);
  const url = allowedUrl(world.policy);
  return reach(world, url, scriptedResolver([{ A: [address] }]));
}

export function runMetadataCase(world: CaseWorld, given: CaseGiven): Promise<Verdict> {
  return isIP(String(given.input)) === 0 ? runUrlCase(world, given) : runAddressCase(world, given);
}

async function reach(world: CaseWorld, url: URL, resolve: ResolveHost): Promise<Verdict> {
  await using opened = openClient(world, { resolve });
  const request = { kind: 'discovery', url, method: 'GET', headers: {} } as const;
  return verdictOf(await opened.client.exchange(request), opened);
}

const dnsInput = z.object({ url: z.string(), lookups: z.array(dnsAnswerSchema).min(1) });

/** Each connection of one pool looks up again; an earlier good answer must not vouch for a later one. */
export async function runDnsCase(world: CaseWorld, given: CaseGiven): Promise<Verdict> {
  const { url: text, lookups } = dnsInput.parse(given.input);
  const url = URL.parse(text);
  if (url === null) return { expect: 'deny', stage: 'parse' };
  const isSilent = lookups.some(({ timeout }) => timeout === true);
  const counted = countCalls(scriptedResolver(lookups));
  await using pool = openPool(world, {
    url,
    resolve: counted.resolve,
    clock: isSilent ? scaledClock(FAST) : systemClock,
  });
  const connections = connectionsOf(given, lookups.length);
  for (let number = 1; number < connections; number += 1) {
    const verdict = await send(pool, url);
    if (verdict.expect === 'deny')
      return { ...verdict, stage: `${verdict.stage} of connection ${number}` };
  }
  const [dialledBefore, lookupsBefore] = [world.dialled.length, counted.calls()];
  const verdict = await send(pool, url);
  return {
    ...verdict,
    connectedTo: world.dialled.slice(dialledBefore),
    lookups: counted.calls() - lookupsBefore,
  };
}

function connectionsOf({ phase, maxLookups }: CaseGiven, lookups: number): number {
  if (phase === undefined) return maxLookups === undefined ? lookups : 1;
  const index = ORDINALS.indexOf(phase);
  if (index === -1) throw new TypeError(`unknown phase ${JSON.stringify(phase)}`);
  return index + 1;
}

function countCalls(resolve: ResolveHost): { resolve: ResolveHost; calls: () => number } {
  let calls = 0;
  return {
    calls: () => calls,
    resolve: (...args) => {
      calls += 1;
      resolve(...args);
    },
  };
}

export function allowedUrl({ allowedHosts, allowedPorts, inClusterExceptions }: EgressPolicy): URL {
  const rule = allowedHosts.find((host) => inClusterExceptions.every((e) => e.host !== host));
  if (rule === undefined) throw new TypeError('the policy names no host without an exception');
  const host = rule === '*' ? NAME : rule.replace(/^\*/, 'name');
  return new URL(`https://${host}:${allowedPorts[0] ?? 443}/`);
}

interface PoolParts {
  readonly url: URL;
  readonly resolve: ResolveHost;
  readonly clock?: Clock;
}

function openPool(world: CaseWorld, { url, resolve, clock }: PoolParts): GuardedPool {
  return createGuardedPool({
    origin: url.href,
    policy: world.policy,
    connections: 1,
    keepAliveMs: 1000,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    caBundle: world.caPem,
    clock: clock ?? systemClock,
    openSocket: world.openSocket,
    resolve,
  });
}

async function send(pool: GuardedPool, url: URL): Promise<Verdict> {
  const outcome = await exchange(pool, {
    method: 'GET',
    path: `${url.pathname}${url.search}`,
    body: null,
  });
  if (outcome.kind === 'answer') return { expect: 'allow' };
  const { error } = outcome;
  return error instanceof EgressError
    ? { expect: 'deny', stage: error.stage, reason: error.reason }
    : { expect: 'deny', stage: 'exchange', reason: String(error) };
}
