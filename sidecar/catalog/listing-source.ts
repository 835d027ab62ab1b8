// The tools of one server as one partition last saw them in one era: listed when first needed,
// refreshed in the background when they age, kept when a refresh fails. Only the very first
// attempt is ever waited for, and never longer than the connect timeout: a dead server costs a
// new agent that once, and everybody else nothing.

import { createHash } from 'node:crypto';

import type { Clock, TimerHandle } from '#core/clock.ts';
import { FairleadError } from '#core/errors.ts';
import type { ErrorCode } from '#core/errors.ts';
import type { Logger } from '#core/telemetry/log.ts';
import type { RefreshOutcome } from '#core/telemetry/metrics.ts';
import type { Era } from '#sidecar/agent-api/exchange.ts';
import type { Partition } from '#sidecar/connections/partition.ts';
import { listTools } from '#sidecar/upstream/list-tools.ts';
import type { Side, ToolListing, UpstreamSession } from '#sidecar/upstream/upstream-types.ts';

const MIN_TTL_MS = 1_000;
const MAX_TTL_MS = 86_400_000;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/** Failures that a server gives when it does not, or no longer, speak what it is spoken to in. */
export const WAYS_REFUSED: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'UPSTREAM_REFUSED',
  'UPSTREAM_PROTOCOL_ERROR',
  'UPSTREAM_VERSION_UNSUPPORTED',
]);

export type ListingState =
  | { readonly kind: 'pending' }
  | { readonly kind: 'listed'; readonly listing: ToolListing; readonly side: Side }
  /** `last` is the last good listing: its tools stay visible while the server is away. */
  | {
      readonly kind: 'unavailable';
      readonly error: FairleadError;
      readonly last: Listed | undefined;
    };

export interface Listed {
  readonly listing: ToolListing;
  readonly side: Side;
}

export interface ListingSourceOptions {
  readonly partition: Partition;
  readonly era: Era;
  readonly defaultTtlMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** The visible tools or the state may have changed. */
  readonly onChanged: () => void;
  /** The list was read, or could not be. */
  readonly onRead: (outcome: RefreshOutcome) => void;
  /** The server was there and did not want to be asked in this way. */
  readonly onRefused: () => void;
}

export class ListingSource {
  readonly #options: ListingSourceOptions;
  #state: ListingState = { kind: 'pending' };
  #refresh: Promise<void> | undefined;
  #dueMs = 0;
  #failures = 0;
  #fingerprint: string | undefined;
  #retryTimer: TimerHandle | undefined;
  #isClosed = false;

  constructor(options: ListingSourceOptions) {
    this.#options = options;
  }

  get state(): ListingState {
    return this.#state;
  }

  /** True until the first attempt has ended, well or badly. */
  get isPending(): boolean {
    return this.#state.kind === 'pending';
  }

  /** Starts what is due and returns at once. */
  poke(): void {
    if (this.#isClosed || this.#refresh !== undefined) return;
    if (this.#options.clock.monotonicMs() >= this.#dueMs) this.#start();
  }

  /** Resolves when the first attempt has ended, at the latest after the connect timeout. */
  async firstAttempt(): Promise<void> {
    this.poke();
    if (!this.isPending || this.#refresh === undefined) return;
    await this.#bounded(this.#refresh);
  }

  /** The server is spoken to in another way from now on: what it lists may have changed. */
  refresh(): void {
    this.#retry();
  }

  /** The server was reached in the other era: what is unavailable here is worth another look at once. */
  retryNow(): void {
    if (this.#state.kind === 'unavailable') this.#retry();
  }

  /** A call found the server away: look again soon, in the background. */
  noteUnavailable(error: FairleadError): void {
    if (this.#state.kind === 'unavailable' || this.#isClosed) return;
    this.#fail(error);
  }

  close(): void {
    this.#isClosed = true;
    this.#retryTimer?.cancel();
  }

  #bounded(work: Promise<void>): Promise<void> {
    const { clock, partition } = this.#options;
    return new Promise((resolve) => {
      const timer = clock.setTimer(partition.target.server.limits.connectTimeoutMs, () => {
        if (this.isPending)
          this.#fail(
            new FairleadError('SERVER_UNAVAILABLE', {
              logDetail: 'no answer within the connect timeout',
            }),
          );
        resolve();
      });
      void work.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  /** The timer is the judge of its time: it may fire a little before the clock says so. */
  #retry(): void {
    if (!this.#isClosed && this.#refresh === undefined) this.#start();
  }

  #start(): void {
    this.#retryTimer?.cancel();
    this.#refresh = this.#list()
      .then((listed) => this.#succeed(listed))
      .catch((error: unknown) => {
        if (!this.#isClosed) this.#options.onRead('failed');
        this.#fail(asFairleadError(error));
      })
      .finally(() => {
        this.#refresh = undefined;
      });
  }

  async #list(): Promise<Listed> {
    const { partition, era } = this.#options;
    partition.lease();
    try {
      const side = await partition.negotiator.sideFor(era);
      const session = side.era === 'legacy' ? await partition.sharedSession.get() : undefined;
      return { listing: await this.#listIn(side, session), side };
    } finally {
      partition.release();
    }
  }

  async #listIn(side: Side, session: UpstreamSession | undefined): Promise<ToolListing> {
    const { partition } = this.#options;
    try {
      return await listTools(partition.target, side, session);
    } catch (error) {
      if (
        session === undefined ||
        !(error instanceof FairleadError) ||
        error.code !== 'SESSION_LOST'
      )
        throw error;
      // A list only reads: with a session that the server forgot, it is asked once more in a new one.
      partition.sharedSession.forget(session);
      return listTools(partition.target, side, await partition.sharedSession.get());
    }
  }

  #succeed(listed: Listed): void {
    if (this.#isClosed) return;
    const { clock, defaultTtlMs, onRead } = this.#options;
    const ttlMs = Math.min(MAX_TTL_MS, Math.max(MIN_TTL_MS, listed.listing.ttlMs ?? defaultTtlMs));
    // Not all sidecars ask again in the same second.
    this.#dueMs = clock.monotonicMs() + ttlMs * (0.9 + Math.random() * 0.1);
    this.#failures = 0;
    const fingerprint = fingerprintOf(listed);
    const isChanged = fingerprint !== this.#fingerprint;
    this.#fingerprint = fingerprint;
    onRead(isChanged ? 'changed' : 'unchanged');
    // Equal content is no change: what was made of it stays.
    if (isChanged || this.#state.kind !== 'listed') this.#setState({ kind: 'listed', ...listed });
  }

  #fail(error: FairleadError): void {
    const { clock, log, partition, era } = this.#options;
    const last =
      this.#state.kind === 'listed'
        ? this.#state
        : this.#state.kind === 'unavailable'
          ? this.#state.last
          : undefined;
    const delayMs =
      Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#failures) * (0.5 + Math.random() * 0.5);
    this.#failures += 1;
    this.#dueMs = clock.monotonicMs() + delayMs;
    if (this.#isClosed) return;
    if (this.#state.kind !== 'unavailable') {
      log.warn(
        {
          alias: partition.target.server.alias,
          era,
          error_code: error.code,
          detail: error.logDetail,
        },
        'server unavailable',
      );
    }
    this.#setState({ kind: 'unavailable', error, last });
    if (WAYS_REFUSED.has(error.code)) this.#options.onRefused();
    this.#retryTimer?.cancel();
    this.#retryTimer = clock.setTimer(delayMs, () => this.#retry(), { unref: true });
  }

  #setState(state: ListingState): void {
    if (state.kind === 'listed' && this.#state.kind === 'unavailable') {
      this.#options.log.info(
        { alias: this.#options.partition.target.server.alias },
        'server available again',
      );
    }
    this.#state = state;
    this.#options.onChanged();
  }
}

function asFairleadError(error: unknown): FairleadError {
  return error instanceof FairleadError
    ? error
    : new FairleadError('INTERNAL_ERROR', { cause: error });
}

/** Equal for lists that agents and the status page cannot tell apart. */
function fingerprintOf({ listing, side }: Listed): string {
  const { tools, rejected } = listing;
  const { era, protocolVersion, serverInfo } = side;
  const content = [
    era,
    protocolVersion,
    serverInfo,
    tools.map((tool) => tool.definition),
    rejected,
  ];
  return createHash('sha256').update(JSON.stringify(content)).digest('hex');
}

/** What is visible of a state: the current listing, or the last good one. */
export function visibleListing(state: ListingState): Listed | undefined {
  if (state.kind === 'listed') return state;
  return state.kind === 'unavailable' ? state.last : undefined;
}
