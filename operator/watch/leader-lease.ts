// Leader election on a Lease: one process acts, the others wait. Expiry is measured on this process's own
// monotonic clock since the last change that it saw, never from times that another machine wrote.
// As a WriteGate it refuses every write once the last renewal is older than the renew deadline, so that a
// process that was frozen cannot write before it has noticed. A lost lease is final: the process must exit.

import type { Clock, TimerHandle } from '#core/clock.ts';
import { errorFields } from '#operator/kube/error-fields.ts';
import type { KubeClient } from '#operator/kube/kube-client.ts';
import { isKubeError } from '#operator/kube/kube-error.ts';
import { LEASES } from '#operator/kube/kube-object.ts';
import type { KubeObject } from '#operator/kube/kube-object.ts';
import { LeaseLostError } from '#operator/kube/write-gate.ts';
import type { WriteGate } from '#operator/kube/write-gate.ts';
import {
  DEFAULT_LEASE_TIMINGS,
  acquireDelayMs,
  assertTimings,
  parseLease,
  renderHeldLease,
  renderReleasedLease,
} from './lease-record.ts';
import type { LeaseTimings } from './lease-record.ts';
import type { WatchLog } from './watch-log.ts';

export interface LeaderLeaseOptions {
  /** Not gated by this lease; its calls go in front of the rate limit. */
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  /** Unique to this process: host name and a random part. */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: WatchLog;
  /** Called once when the lease was held and is lost. The process must end now, without further writes. */
  readonly onLost: (reason: string) => void;
  readonly metrics?: LeaseMetrics;
  readonly timings?: LeaseTimings;
  readonly random?: () => number;
}

/** `leader_election_master_status` */
export interface LeaseMetrics {
  leading(isLeader: boolean): void;
}

type LeaseState = 'waiting' | 'held' | 'lost' | 'released';

export class LeaderLease implements WriteGate {
  readonly #options: LeaderLeaseOptions;
  readonly #client: KubeClient;
  readonly #timings: LeaseTimings;
  readonly #random: () => number;
  readonly #stopping = new AbortController();
  readonly #acquired = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #state: LeaseState = 'waiting';
  #lease: KubeObject | undefined;
  /** When the Lease last looked different, on our own clock. */
  #observedAtMs = 0;
  /** When the request that last renewed the Lease began: no other elector can have started to wait earlier. */
  #renewedAtMs = Number.NEGATIVE_INFINITY;
  #deadlineTimer: TimerHandle | undefined;

  constructor(options: LeaderLeaseOptions) {
    this.#options = options;
    this.#client = options.client
      .inFront()
      .gatedBy({ assertMayWrite: () => this.#assertMayRenew() });
    this.#timings = options.timings ?? DEFAULT_LEASE_TIMINGS;
    this.#random = options.random ?? Math.random;
    assertTimings(this.#timings);
    this.#acquired.promise.catch(() => undefined);
  }

  /** Resolves when this process leads; rejects when it is released before. */
  get acquired(): Promise<void> {
    return this.#acquired.promise;
  }

  get isLeader(): boolean {
    return this.#state === 'held' && this.#ageMs() < this.#timings.renewDeadlineMs;
  }

  assertMayWrite(): void {
    if (this.isLeader) return;
    const age =
      this.#state === 'held'
        ? `was last renewed ${String(Math.round(this.#ageMs()))} ms ago`
        : `is ${this.#state}`;
    throw new LeaseLostError(`refused to write: the leader lease ${age}`);
  }

  start(): void {
    this.#options.metrics?.leading(false);
    this.#running ??= this.#run();
  }

  /** Ends the election; gives the Lease back when we hold it. Nothing may be written afterwards. */
  async release(): Promise<void> {
    const wasHeld = this.#state === 'held';
    if (this.#state !== 'lost') this.#state = 'released';
    this.#deadlineTimer?.cancel();
    this.#stopping.abort(new Error('the leader election was ended'));
    this.#acquired.reject(this.#stopping.signal.reason);
    await this.#running;
    this.#options.metrics?.leading(false);
    if (wasHeld) await this.#giveBack();
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted && this.#state !== 'lost') {
      await this.#tryOnce();
      const wait = { expiresInMs: this.#expiresInMs(), random: this.#random };
      const delayMs =
        this.#state === 'held' ? this.#timings.retryPeriodMs : acquireDelayMs(this.#timings, wait);
      await clock.sleep(delayMs, signal).catch(() => undefined);
    }
  }

  async #tryOnce(): Promise<void> {
    try {
      if (this.#lease === undefined || this.#state !== 'held') await this.#observe();
      if (this.#isFree()) await this.#write();
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      this.#options.log.warn(
        { ...errorFields(error), lease: this.#options.name },
        'the leader lease could not be read or written',
      );
      // Somebody else wrote it, or it is gone: what we know is old.
      if (isKubeError(error, 'conflict', 'already-exists', 'not-found'))
        await this.#observe().catch(() => undefined);
    }
  }

  /** Reads the Lease, and notes on our own clock when it changed. */
  async #observe(): Promise<void> {
    const { namespace, name, clock } = this.#options;
    const lease = await this.#client.find(
      { resource: LEASES, namespace, name },
      this.#callOptions(),
    );
    if (lease?.metadata.resourceVersion !== this.#lease?.metadata.resourceVersion)
      this.#observedAtMs = clock.monotonicMs();
    this.#lease = lease;
    if (this.#state !== 'held') return;
    const holder = lease === undefined ? '' : parseLease(lease).holder;
    if (holder !== this.#options.identity)
      this.#lose(`the Lease is held by ${JSON.stringify(holder)}`);
  }

  /** True when the Lease is ours, nobody's, or its holder has not renewed it for its whole duration. */
  #isFree(): boolean {
    if (this.#state === 'lost' || this.#state === 'released') return false;
    if (this.#lease === undefined) return true;
    const record = parseLease(this.#lease);
    if (record.holder === '' || record.holder === this.#options.identity) return true;
    return this.#expiresInMs() <= 0;
  }

  #expiresInMs(): number {
    if (this.#lease === undefined) return 0;
    return (
      this.#observedAtMs + parseLease(this.#lease).durationMs - this.#options.clock.monotonicMs()
    );
  }

  /** A holder that slept past its deadline does not even ask: the Lease may be somebody else's by now. */
  #assertMayRenew(): void {
    if (this.#state !== 'held' || this.#ageMs() < this.#timings.renewDeadlineMs) return;
    throw new LeaseLostError(
      `the leader lease was last renewed ${String(Math.round(this.#ageMs()))} ms ago`,
    );
  }

  async #write(): Promise<void> {
    const { clock, namespace, name, identity } = this.#options;
    const beganAtMs = clock.monotonicMs();
    const lease = renderHeldLease({
      namespace,
      name,
      identity,
      timings: this.#timings,
      wallMs: clock.nowMs(),
      current: this.#lease,
    });
    const written =
      this.#lease === undefined
        ? await this.#client.create(LEASES, lease, this.#callOptions())
        : await this.#client.update(LEASES, lease, this.#callOptions());
    if (this.#state === 'lost' || this.#state === 'released') {
      this.#lease = written;
      return;
    }
    this.#lease = written;
    this.#observedAtMs = clock.monotonicMs();
    this.#renewedAtMs = beganAtMs;
    this.#armDeadline();
    if (this.#state === 'held') return;
    this.#state = 'held';
    this.#options.metrics?.leading(true);
    this.#options.log.info({ lease: name, identity }, 'became the leader');
    this.#acquired.resolve();
  }

  #armDeadline(): void {
    this.#deadlineTimer?.cancel();
    const leftMs = this.#timings.renewDeadlineMs - this.#ageMs();
    this.#deadlineTimer = this.#options.clock.setTimer(Math.max(0, leftMs), () => {
      if (this.#state === 'held')
        this.#lose(`it could not be renewed for ${String(this.#timings.renewDeadlineMs)} ms`);
    });
  }

  #lose(reason: string): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    this.#deadlineTimer?.cancel();
    this.#options.metrics?.leading(false);
    this.#options.log.error({ lease: this.#options.name, reason }, 'lost the leader lease');
    this.#options.onLost(reason);
  }

  async #giveBack(): Promise<void> {
    const { clock, namespace, name, identity } = this.#options;
    const call = { timeoutMs: 2_000, maxRetries: 0 };
    try {
      // Read again: a renewal that was cut off by the release may have arrived.
      const current = await this.#client.find({ resource: LEASES, namespace, name }, call);
      if (current === undefined || parseLease(current).holder !== identity) return;
      const write = {
        namespace,
        name,
        identity,
        timings: this.#timings,
        wallMs: clock.nowMs(),
        current,
      };
      await this.#client.update(LEASES, renderReleasedLease(write), call);
    } catch (error) {
      this.#options.log.warn(
        { ...errorFields(error), lease: name },
        'the leader lease could not be given back',
      );
    }
  }

  /** Half the renew deadline at most, so that one hanging request leaves time for another. */
  #callOptions(): { timeoutMs: number; maxRetries: number; signal: AbortSignal } {
    return {
      timeoutMs: this.#timings.renewDeadlineMs / 2,
      maxRetries: 0,
      signal: this.#stopping.signal,
    };
  }

  #ageMs(): number {
    return this.#options.clock.monotonicMs() - this.#renewedAtMs;
  }
}
