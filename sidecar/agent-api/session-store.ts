// The legacy sessions of this pod's agents: opened by initialize, ended by DELETE, by half an hour
// of silence, or by the drain. Bounded: a flood of initialize drops the session that was silent
// longest, never one with a request in flight. A session id is no credential: every look-up
// checks the principal and the path (R19, R20).

import { randomBytes } from 'node:crypto';

import type { Clock, TimerHandle } from '#core/clock.ts';
import type { ProtocolVersion } from '#core/config/sidecar-config.ts';

import type { AgentSession } from './agent-session.ts';
import type { Principal } from './exchange.ts';
import { InFlightRequests } from './in-flight-requests.ts';

export const MAX_SESSIONS = 10_000;
export const IDLE_EXPIRY_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
/** 144 bits, in visible ASCII. */
const ID_BYTES = 18;

export interface SessionOptions {
  readonly protocolVersion: ProtocolVersion;
  readonly principal: Principal;
  readonly alias: string | undefined;
  readonly clientCapabilities: Readonly<Record<string, unknown>>;
}

export interface SessionStoreOptions {
  readonly clock: Clock;
  /** A listener of a session's end failed; the session has ended all the same. */
  readonly onCloseFailed: (thrown: unknown) => void;
  /** How many sessions there are, after each change. */
  readonly onCount?: (count: number) => void;
  readonly maxSessions?: number;
}

export class SessionStore {
  readonly #clock: Clock;
  readonly #onCloseFailed: (thrown: unknown) => void;
  readonly #onCount: (count: number) => void;
  readonly #maxSessions: number;
  readonly #sessions = new Map<string, StoredSession>();
  #sweepTimer: TimerHandle | undefined;

  constructor(options: SessionStoreOptions) {
    this.#clock = options.clock;
    this.#onCloseFailed = options.onCloseFailed;
    this.#onCount = options.onCount ?? (() => {});
    this.#maxSessions = options.maxSessions ?? MAX_SESSIONS;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Undefined when the store is full of sessions with requests in flight. */
  open(options: SessionOptions): AgentSession | undefined {
    if (this.#sessions.size >= this.#maxSessions && !this.#dropQuietest()) return undefined;
    const session = new StoredSession(options, this.#clock.monotonicMs());
    this.#sessions.set(session.id, session);
    this.#onCount(this.#sessions.size);
    this.#sweepTimer ??= this.#clock.setTimer(SWEEP_MS, this.#sweep, { unref: true });
    return session;
  }

  /** The session, when it exists and is this caller's on this path; the use counts as activity. */
  find(id: string, principal: Principal, alias: string | undefined): AgentSession | undefined {
    const session = this.#sessions.get(id);
    if (
      session === undefined ||
      session.alias !== alias ||
      !isSamePrincipal(session.principal, principal)
    )
      return undefined;
    session.lastUsedMs = this.#clock.monotonicMs();
    return session;
  }

  /** Ends the session; resolves when what hangs on it has closed. */
  async close(session: AgentSession): Promise<void> {
    if (!this.#sessions.delete(session.id)) return;
    this.#onCount(this.#sessions.size);
    for (const request of session.inFlight.values()) request.cancelByAgent();
    if (session instanceof StoredSession) await session.runCloseListeners(this.#onCloseFailed);
  }

  async closeAll(): Promise<void> {
    this.#sweepTimer?.cancel();
    this.#sweepTimer = undefined;
    await Promise.all([...this.#sessions.values()].map((session) => this.close(session)));
  }

  readonly #sweep = (): void => {
    this.#sweepTimer = undefined;
    const limit = this.#clock.monotonicMs() - IDLE_EXPIRY_MS;
    for (const session of this.#sessions.values()) {
      if (session.lastUsedMs < limit && session.inFlight.size === 0) void this.close(session);
    }
    if (this.#sessions.size > 0)
      this.#sweepTimer = this.#clock.setTimer(SWEEP_MS, this.#sweep, { unref: true });
  };

  #dropQuietest(): boolean {
    let quietest: StoredSession | undefined;
    for (const session of this.#sessions.values()) {
      if (session.inFlight.size === 0 && session.lastUsedMs < (quietest?.lastUsedMs ?? Infinity))
        quietest = session;
    }
    if (quietest === undefined) return false;
    void this.close(quietest);
    return true;
  }
}

class StoredSession implements AgentSession {
  readonly id: string;
  readonly protocolVersion: ProtocolVersion;
  readonly principal: Principal;
  readonly alias: string | undefined;
  readonly clientCapabilities: Readonly<Record<string, unknown>>;
  readonly inFlight = new InFlightRequests();
  lastUsedMs: number;
  readonly #closeListeners = new Set<() => Promise<void> | void>();

  constructor(options: SessionOptions, nowMs: number) {
    this.id = randomBytes(ID_BYTES).toString('base64url');
    this.protocolVersion = options.protocolVersion;
    this.principal = options.principal;
    this.alias = options.alias;
    this.clientCapabilities = options.clientCapabilities;
    this.lastUsedMs = nowMs;
  }

  onClosed(listener: () => Promise<void> | void): () => void {
    this.#closeListeners.add(listener);
    return () => void this.#closeListeners.delete(listener);
  }

  async runCloseListeners(onFailed: (thrown: unknown) => void): Promise<void> {
    const listeners = [...this.#closeListeners];
    this.#closeListeners.clear();
    const running = listeners.map(async (listener) => listener());
    for (const outcome of await Promise.allSettled(running)) {
      if (outcome.status === 'rejected') onFailed(outcome.reason);
    }
  }
}

export function isSamePrincipal(a: Principal, b: Principal): boolean {
  return a === b || (a.tenant === b.tenant && a.user === b.user && a.agent === b.agent);
}
