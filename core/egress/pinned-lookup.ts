// DNS for one pool. Every address that the resolver returns is judged, all or nothing, and the
// judged list is the list that gets dialled: nothing resolves the name a second time. Picking the
// good addresses out of a mixed answer would be a bypass (happy eyeballs tries them all).
//
// Public names are looked up absolute, with a final dot: with `ndots:5` a pod's search list would
// otherwise turn `mcp.example.com` into a Service of a namespace called `com`. In-cluster
// exceptions need that search list, and development needs /etc/hosts, so those get no dot.

import { lookup as systemLookup } from 'node:dns';
import type { LookupAddress, LookupAllOptions } from 'node:dns';

import type { Clock } from '#core/clock.ts';
import { decideAddress, isLoopbackHost } from './decide-egress.ts';
import { EgressError } from './egress-error.ts';
import type { EgressPolicy, FailureReason, OnEgressDecision } from './egress-policy.ts';
import { exceptionsOf, isPrivateName } from './host-rule.ts';

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

export type LookupOutcome =
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  | { readonly kind: 'refused'; readonly error: EgressError };

/** Calls back once, never within the call; what it returns gives the lookup up. */
export type PinnedLookup = (host: string, done: (outcome: LookupOutcome) => void) => () => void;

export function createPinnedLookup(options: PinnedLookupOptions): PinnedLookup {
  const resolve = options.resolve ?? resolveWithSystem;
  return (host, done) => {
    let isOver = false;
    // The first answer counts; later ones are not even judged, so that no record contradicts it.
    const answer = (judgement: () => LookupOutcome): void => {
      if (isOver) return;
      isOver = true;
      timer.cancel();
      const outcome = judgement();
      process.nextTick(done, outcome);
    };
    const fail = (reason: FailureReason, detail: string | undefined): void =>
      answer(() => failed(options, { host, reason, detail }));
    const timer = options.clock.setTimer(options.timeoutMs, () => fail('dns-timeout', undefined));
    try {
      resolve(queryName(options.policy, host), { all: true }, (error, addresses) => {
        if (error) fail(failureOf(error), error.code);
        else answer(() => judge(options, host, addresses));
      });
    } catch {
      fail('dns-failed', undefined);
    }
    return () => {
      isOver = true;
      timer.cancel();
    };
  };
}

export function resolveWithSystem(...[hostname, options, callback]: Parameters<ResolveHost>): void {
  systemLookup(hostname, options, callback);
}

/** The name to ask for: absolute for public names. */
export function queryName(policy: EgressPolicy, host: string): string {
  const isException = exceptionsOf(policy.inClusterExceptions, host).length > 0;
  const isDevelopment = policy.development && isLoopbackHost(host);
  // A proxy is often a Service: `proxy.egress.svc` is a name in the pod's search list only.
  const isPrivateProxy = policy.isProxy === true && isPrivateName(host);
  const isRelative = isException || isDevelopment || isPrivateProxy;
  return isRelative || host.endsWith('.') ? host : `${host}.`;
}

function judge(
  options: PinnedLookupOptions,
  host: string,
  addresses: readonly LookupAddress[],
): LookupOutcome {
  const { policy, port, onDecision } = options;
  if (!Array.isArray(addresses) || addresses.length === 0) {
    onDecision({ verdict: 'deny', stage: 'resolve', reason: 'no-address', host, port });
    return refused(
      new EgressError('SERVER_UNAVAILABLE', { stage: 'resolve', reason: 'no-address' }),
    );
  }
  // Copied before it is judged: what is judged is what gets dialled.
  const pinned = addresses.map(({ address }) => address);
  for (const address of pinned) {
    const decision = decideAddress(policy, { host, port, address, stage: 'resolve' });
    if (decision.kind === 'allow') continue;
    onDecision({ verdict: 'deny', ...decision, host, port, address });
    return refused(new EgressError('EGRESS_DENIED', { stage: 'resolve', reason: decision.reason }));
  }
  return { kind: 'addresses', addresses: pinned };
}

function refused(error: EgressError): LookupOutcome {
  return { kind: 'refused', error };
}

interface LookupFailure {
  readonly host: string;
  readonly reason: FailureReason;
  readonly detail: string | undefined;
}

function failed(
  options: PinnedLookupOptions,
  { host, reason, detail }: LookupFailure,
): LookupOutcome {
  const record = { verdict: 'failed', stage: 'resolve', reason, host, port: options.port } as const;
  options.onDecision(detail === undefined ? record : { ...record, detail });
  return refused(new EgressError('SERVER_UNAVAILABLE', { stage: 'resolve', reason }));
}

function failureOf(error: NodeJS.ErrnoException): FailureReason {
  return error.code === 'ENOTFOUND' || error.code === 'ENODATA' ? 'dns-not-found' : 'dns-failed';
}
