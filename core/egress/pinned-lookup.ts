// DNS for one pool. Every address that the resolver returns is judged, all or nothing, and the
// judged list is the list that gets dialled: nothing resolves the name a second time. Picking the
// good addresses out of a mixed answer would be a bypass (happy eyeballs tries them all).
//
// Public names are looked up absolute, with a final dot: with `ndots:5` a pod's search list would
// otherwise turn `mcp.example.com` into a Service of a namespace called `com`. In-cluster
// exceptions need that search list, and development needs /etc/hosts, so those get no dot.

import { lookup as systemLookup } from 'node:dns';
import type { LookupAddress, LookupAllOptions } from 'node:dns';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';

import type { Clock } from '#core/clock.ts';
import { decideAddress, isLoopbackHost } from './decide-egress.ts';
import { EgressError } from './egress-error.ts';
import type { EgressPolicy, FailureReason, OnEgressDecision } from './egress-policy.ts';
import { exceptionsOf } from './host-rule.ts';

/** DNS that takes longer leaves no time to connect, and gets its own word in the record. */
const DNS_SHARE = 0.8;

/** How long a lookup may take within a connection attempt. */
export function lookupTimeoutMs(connectTimeoutMs: number): number {
  return Math.ceil(connectTimeoutMs * DNS_SHARE);
}

/** The shape of `dns.lookup` with `all: true`; may call back at once, late, twice or never. */
export type ResolveHost = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void,
) => void;

export interface PinnedLookupOptions {
  readonly policy: EgressPolicy;
  readonly port: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly onDecision: OnEgressDecision;
  readonly resolve?: ResolveHost | undefined;
}

type Outcome = { readonly error: EgressError } | { readonly addresses: readonly LookupAddress[] };

/** A `lookup` for net.connect and tls.connect. */
export function createPinnedLookup(options: PinnedLookupOptions): LookupFunction {
  const resolve = options.resolve ?? resolveWithSystem;
  return (host, lookupOptions, done) => {
    // The first answer counts; later ones are not even judged, so that no record contradicts it.
    const answer = once((judgement: () => Outcome) => {
      timer.cancel();
      const outcome = judgement();
      // Never in the caller's stack: an answer at once crashes the process when a TLS
      // connection then fails at once (its error listener is not there yet).
      process.nextTick(() => deliver(outcome, lookupOptions.all === true, done));
    });
    const fail = (reason: FailureReason, detail: string | undefined): void =>
      answer(() => failed(options, { host, reason, detail }));
    const timer = options.clock.setTimer(options.timeoutMs, () => fail('dns-timeout', undefined));
    const { all: _, ...rest } = lookupOptions;
    try {
      resolve(queryName(options.policy, host), { ...rest, all: true }, (error, addresses) => {
        if (error) fail(failureOf(error), error.code);
        else answer(() => judge(options, host, addresses));
      });
    } catch {
      fail('dns-failed', undefined);
    }
  };
}

export function resolveWithSystem(...[hostname, options, callback]: Parameters<ResolveHost>): void {
  systemLookup(hostname, options, callback);
}

/** The name to ask for: absolute for public names. */
export function queryName(policy: EgressPolicy, host: string): string {
  const isException = exceptionsOf(policy.inClusterExceptions, host).length > 0;
  const isDevelopment = policy.development && isLoopbackHost(host);
  return isException || isDevelopment || host.endsWith('.') ? host : `${host}.`;
}

function judge(
  options: PinnedLookupOptions,
  host: string,
  addresses: readonly LookupAddress[],
): Outcome {
  const { policy, port, onDecision } = options;
  if (!Array.isArray(addresses) || addresses.length === 0) {
    onDecision({ verdict: 'deny', stage: 'resolve', reason: 'no-address', host, port });
    return {
      error: new EgressError('SERVER_UNAVAILABLE', { stage: 'resolve', reason: 'no-address' }),
    };
  }
  // Copied before it is judged: what is judged is what gets dialled. The family is ours to state.
  const pinned = addresses.map(({ address }) => ({ address, family: isIP(address) }));
  for (const { address } of pinned) {
    const decision = decideAddress(policy, { host, port, address, stage: 'resolve' });
    if (decision.kind === 'allow') continue;
    onDecision({ verdict: 'deny', ...decision, host, port, address });
    return {
      error: new EgressError('EGRESS_DENIED', { stage: 'resolve', reason: decision.reason }),
    };
  }
  return { addresses: pinned };
}

interface LookupFailure {
  readonly host: string;
  readonly reason: FailureReason;
  readonly detail: string | undefined;
}

function failed(options: PinnedLookupOptions, { host, reason, detail }: LookupFailure): Outcome {
  const record = { verdict: 'failed', stage: 'resolve', reason, host, port: options.port } as const;
  options.onDecision(detail === undefined ? record : { ...record, detail });
  return { error: new EgressError('SERVER_UNAVAILABLE', { stage: 'resolve', reason }) };
}

function failureOf(error: NodeJS.ErrnoException): FailureReason {
  return error.code === 'ENOTFOUND' || error.code === 'ENODATA' ? 'dns-not-found' : 'dns-failed';
}

function deliver(outcome: Outcome, isAll: boolean, done: Parameters<LookupFunction>[2]): void {
  if ('error' in outcome) {
    done(outcome.error, '', 0);
    return;
  }
  const [first] = outcome.addresses;
  if (isAll) done(null, [...outcome.addresses]);
  else done(null, first?.address ?? '', first?.family ?? 0);
}

function once<T>(run: (value: T) => void): (value: T) => void {
  let isDone = false;
  return (value) => {
    if (isDone) return;
    isDone = true;
    run(value);
  };
}
