// The contents of a Lease and what an elector may do about them: pure, on monotonic times of its own.
// renewTime of the Lease is written for people and never compared: clocks of two machines differ.

import { apiVersionOf, LEASES } from '#operator/kube/kube-object.ts';
import type { KubeObject } from '#operator/kube/kube-object.ts';
import { isRecord } from '#operator/kube/kube-error.ts';
import { microTime } from '#operator/kube/micro-time.ts';

export interface LeaseRecord {
  /** Empty: nobody holds it. */
  readonly holder: string;
  readonly durationMs: number;
  readonly transitions: number;
  readonly acquireTime: string | undefined;
  readonly renewTime: string | undefined;
}

export interface LeaseTimings {
  /** Others wait this long after the last change that they saw. */
  readonly leaseDurationMs: number;
  /** The holder gives up when it could not renew for this long, time-outs of requests included. */
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
}

export const DEFAULT_LEASE_TIMINGS: LeaseTimings = {
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2_000,
};

/** A waiting elector spreads its reads by this much, and its take-over of an expired Lease by a quarter second. */
const READ_JITTER = 0.5;
const TAKE_OVER_SPREAD_MS = 250;

export function assertTimings(timings: LeaseTimings): void {
  const isOrdered =
    timings.leaseDurationMs > timings.renewDeadlineMs &&
    timings.renewDeadlineMs > 1.2 * timings.retryPeriodMs;
  if (!isOrdered)
    throw new TypeError('lease timings must be: duration > renew deadline > 1.2 × retry period');
}

/**
 * How long a waiting elector sleeps: about the retry period, but not past the moment at which the Lease
 * expires. Reading in fixed steps alone would add a whole step to each take-over.
 */
export function acquireDelayMs(
  timings: LeaseTimings,
  wait: { readonly expiresInMs: number; readonly random: () => number },
): number {
  const readMs = timings.retryPeriodMs * (1 + wait.random() * READ_JITTER);
  if (wait.expiresInMs <= 0) return readMs;
  return Math.min(readMs, wait.expiresInMs + wait.random() * TAKE_OVER_SPREAD_MS);
}

export function parseLease(lease: KubeObject): LeaseRecord {
  const spec = isRecord(lease['spec']) ? lease['spec'] : {};
  const { holderIdentity, leaseDurationSeconds, leaseTransitions, acquireTime, renewTime } = spec;
  return {
    holder: typeof holderIdentity === 'string' ? holderIdentity : '',
    durationMs: typeof leaseDurationSeconds === 'number' ? leaseDurationSeconds * 1000 : 0,
    transitions: typeof leaseTransitions === 'number' ? leaseTransitions : 0,
    acquireTime: typeof acquireTime === 'string' ? acquireTime : undefined,
    renewTime: typeof renewTime === 'string' ? renewTime : undefined,
  };
}

export interface LeaseWrite {
  readonly namespace: string;
  readonly name: string;
  readonly identity: string;
  readonly timings: LeaseTimings;
  readonly wallMs: number;
  /** The Lease as it was read; undefined when it does not exist yet. */
  readonly current: KubeObject | undefined;
}

/** The Lease with us as its holder. Carries the resourceVersion of what was read: a lost race is a conflict. */
export function renderHeldLease(write: LeaseWrite): KubeObject {
  const record = write.current === undefined ? undefined : parseLease(write.current);
  const isOurs = record?.holder === write.identity;
  const now = microTime(write.wallMs);
  return renderLease(write, {
    holderIdentity: write.identity,
    leaseDurationSeconds: Math.ceil(write.timings.leaseDurationMs / 1000),
    acquireTime: isOurs ? (record.acquireTime ?? now) : now,
    renewTime: now,
    leaseTransitions: record === undefined ? 0 : record.transitions + (isOurs ? 0 : 1),
  });
}

/** The Lease given back: empty holder and one second, so that the next elector need not wait. */
export function renderReleasedLease(
  write: LeaseWrite & { readonly current: KubeObject },
): KubeObject {
  const now = microTime(write.wallMs);
  return renderLease(write, {
    holderIdentity: '',
    leaseDurationSeconds: 1,
    acquireTime: now,
    renewTime: now,
    leaseTransitions: parseLease(write.current).transitions,
  });
}

function renderLease(write: LeaseWrite, spec: Readonly<Record<string, unknown>>): KubeObject {
  const { current, name, namespace } = write;
  const base = current ?? {
    apiVersion: apiVersionOf(LEASES),
    kind: LEASES.kind,
    metadata: { name, namespace },
  };
  const before = isRecord(base['spec']) ? base['spec'] : {};
  return { ...base, spec: { ...before, ...spec } };
}
