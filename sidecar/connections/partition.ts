// Everything that belongs to one (tenant, user, server, resource, grant): the pool of sockets, the
// permits, the negotiated side, the legacy sessions. Nothing of it is shared with another
// partition, and a partition outlives the configuration that removed it only until its calls end.

import { randomBytes } from 'node:crypto';

import type { Clock } from '#core/clock.ts';
import type { ServerConfig } from '#core/config/sidecar-config.ts';
import type { EgressProxy } from '#core/egress/egress-proxy.ts';
import {
  createGuardedPool,
  type EgressDecision,
  type ResolveHost,
} from '#core/egress/guarded-pool.ts';
import { grantId } from '#core/identity/grant-id.ts';
import type { PartitionKey } from '#core/identity/ids.ts';
import { partitionKey } from '#core/identity/partition-key.ts';
import type { Logger } from '#core/telemetry/log.ts';
import type { AgentSession } from '#sidecar/agent-api/agent-session.ts';
import type { Principal } from '#sidecar/agent-api/exchange.ts';
import { Deadlines } from '#sidecar/upstream/deadlines.ts';
import { openLegacySession } from '#sidecar/upstream/legacy-session.ts';
import { SideNegotiator } from '#sidecar/upstream/negotiate.ts';
import type { Side, UpstreamTarget } from '#sidecar/upstream/upstream-types.ts';

import { Semaphore } from './semaphore.ts';
import { SessionSlot } from './session-slot.ts';

/** Sockets beyond the permits, so that nothing else waits for calls: for negotiation, handshakes and lists, */
const EXTRA_CONNECTIONS = 2;
/** and for messages whose answer is a bare status. */
const CONTROL_CONNECTIONS = 2;
const KEEP_ALIVE_MS = 30_000;

export interface PartitionDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** A start option of `fairlead dev`: plain http and loopback addresses are allowed. */
  readonly isDevelopment: boolean;
  readonly onEgressDecision?: (alias: string, decision: EgressDecision) => void;
  readonly resolve?: ResolveHost;
  /** A legacy session with a server was opened, or ended. */
  readonly onSession?: (change: 1 | -1) => void;
}

export interface PartitionOptions {
  readonly server: ServerConfig;
  readonly principal: Principal;
  readonly bindingNamespace: string;
  /** Counts the connections that this server has had; shown in the log. */
  readonly generation: number;
  /** The only way to the server, where there is one. */
  readonly proxy: EgressProxy | undefined;
  /** The server is spoken to in another way from now on. */
  readonly onSideChanged: () => void;
}

interface AgentSlot {
  readonly slot: SessionSlot;
  readonly unsubscribe: () => void;
}

export class Partition {
  readonly key: PartitionKey;
  readonly generation: number;
  readonly target: UpstreamTarget;
  readonly semaphore: Semaphore;
  readonly negotiator: SideNegotiator;
  /** For lists and for calls of modern agents: used by many, so it never carries a question to an agent. */
  readonly sharedSession: SessionSlot;
  readonly #agentSessions = new Map<AgentSession, AgentSlot>();
  readonly #clock: Clock;
  readonly #onSession: (change: 1 | -1) => void;
  #leases = 0;
  readonly #requestIdPrefix = `call-${randomBytes(9).toString('base64url')}-`;
  #lastRequestId = 0;
  #isRetired = false;
  #onIdle: (() => void) | undefined;

  constructor(options: PartitionOptions, deps: PartitionDeps) {
    const { server } = options;
    const url = new URL(server.endpoint);
    this.key = keyOf(options, url);
    this.generation = options.generation;
    this.#clock = deps.clock;
    this.target = makeTarget(options, url, deps);
    this.semaphore = new Semaphore({
      permits: server.limits.maxConcurrency,
      queueSize: server.limits.queueSize,
      queueTimeoutMs: server.limits.queueTimeoutMs,
      clock: deps.clock,
    });
    this.#onSession = deps.onSession ?? (() => {});
    this.sharedSession = new SessionSlot(() => this.#openSession(), this.#onSession);
    this.negotiator = new SideNegotiator(this.target, {
      offerSession: (session) => this.sharedSession.offer(session),
      onSideChanged: options.onSideChanged,
    });
  }

  get leases(): number {
    return this.#leases;
  }

  /** Counts a use of this partition's sockets; retirement waits for the matching release. */
  lease(): void {
    this.#leases += 1;
  }

  release(): void {
    this.#leases -= 1;
    if (this.#leases === 0) this.#onIdle?.();
  }

  /** Unique among all requests to this server, of other partitions and other pods too. */
  nextRequestId(): string {
    this.#lastRequestId += 1;
    return `${this.#requestIdPrefix}${this.#lastRequestId}`;
  }

  /** The session that mirrors one legacy agent's session; ends with it. */
  sessionFor(agentSession: AgentSession): SessionSlot {
    const known = this.#agentSessions.get(agentSession);
    if (known !== undefined) return known.slot;
    const slot = new SessionSlot(() => this.#openSession(), this.#onSession);
    const unsubscribe = agentSession.onClosed(() => {
      this.#agentSessions.delete(agentSession);
      return slot.close();
    });
    this.#agentSessions.set(agentSession, { slot, unsubscribe });
    return slot;
  }

  /** No new calls; those in flight have `graceMs` to end; then sessions and sockets are closed. */
  async retire(graceMs: number): Promise<void> {
    if (this.#isRetired) return;
    this.#isRetired = true;
    this.semaphore.close();
    await this.#untilIdle(graceMs);
    const own = [...this.#agentSessions.values()];
    this.#agentSessions.clear();
    // A session of an agent may outlive many configurations: it keeps nothing of this one.
    for (const { unsubscribe } of own) unsubscribe();
    const slots = [this.sharedSession, ...own.map(({ slot }) => slot)];
    await Promise.allSettled(slots.map((slot) => slot.close()));
    await this.target.pool.destroy();
  }

  #untilIdle(graceMs: number): Promise<void> {
    if (this.#leases === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#clock.setTimer(graceMs, () => resolve());
      this.#onIdle = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  async #openSession() {
    const side: Side = await this.negotiator.sideFor('legacy');
    return openLegacySession(this.target, {
      protocolVersion: side.protocolVersion,
      clientCapabilities: {},
    });
  }
}

function keyOf({ server, principal, bindingNamespace }: PartitionOptions, url: URL): PartitionKey {
  const subject = {
    tenant: principal.tenant,
    user: principal.user,
    serverNamespace: server.namespace,
    serverName: server.name,
    resource: server.resource,
  };
  return partitionKey({
    ...subject,
    grantId: grantId({ ...subject, endpointOrigin: url.origin, issuer: '', bindingNamespace }),
  });
}

function makeTarget(
  { server, proxy }: PartitionOptions,
  url: URL,
  deps: PartitionDeps,
): UpstreamTarget {
  const pool = createGuardedPool({
    origin: url.origin,
    policy: { ...server.egress, development: deps.isDevelopment },
    connections: server.limits.maxConcurrency + EXTRA_CONNECTIONS,
    controlConnections: CONTROL_CONNECTIONS,
    keepAliveMs: KEEP_ALIVE_MS,
    connectTimeoutMs: server.limits.connectTimeoutMs,
    ...(server.egress.caBundle === undefined ? {} : { caBundle: server.egress.caBundle }),
    onDecision: (decision) => deps.onEgressDecision?.(server.alias, decision),
    ...(deps.resolve === undefined ? {} : { resolve: deps.resolve }),
    proxy,
  });
  const { clock, log } = deps;
  return { server, pool, path: url.pathname, clock, deadlines: new Deadlines(clock), log };
}
