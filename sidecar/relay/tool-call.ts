// One tools/call on its way: permit, side, session, request, answer, and back. The steps run
// synchronously while everything is warm; only what is cold waits. A permit and a lease are given
// back on every path, exactly once.

import type { Clock, TimerHandle } from '#core/clock.ts';
import { FairleadError, type ErrorCode } from '#core/errors.ts';
import { answerError, asFairleadError } from '#sidecar/agent-api/answers.ts';
import type { AgentExchange } from '#sidecar/agent-api/exchange.ts';
import type { CatalogTool } from '#sidecar/catalog/catalog-snapshot.ts';
import { WAYS_REFUSED } from '#sidecar/catalog/listing-source.ts';
import type { Partition } from '#sidecar/connections/partition.ts';
import type { RefusalReason, Waiter } from '#sidecar/connections/semaphore.ts';
import type { SessionSlot } from '#sidecar/connections/session-slot.ts';
import { sendRequest } from '#sidecar/upstream/send-request.ts';
import type {
  InFlightRequest,
  Side,
  UpstreamFailure,
  UpstreamSession,
} from '#sidecar/upstream/upstream-types.ts';

import { AnswerRelay } from './answer-relay.ts';
import type { AnsweredCall } from './answer-relay.ts';
import { CallLeg } from './call-leg.ts';
import { decideFailure } from './decide-failure.ts';
import type { InputRounds } from './input-rounds.ts';

const RETRY_DELAY_MS = 100;
/** Failures that say something about the server rather than about this call. */
const SERVER_FAULTS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'SERVER_UNAVAILABLE',
  'EGRESS_DENIED',
  'UPSTREAM_UNAUTHORIZED',
  'UPSTREAM_REDIRECTED',
  'UPSTREAM_VERSION_UNSUPPORTED',
]);

export interface ToolCallOptions {
  readonly exchange: AgentExchange;
  readonly tool: CatalogTool;
  readonly clock: Clock;
  readonly inputRounds: InputRounds;
}

export class ToolCall implements Waiter, AnsweredCall {
  readonly #exchange: AgentExchange;
  readonly #tool: CatalogTool;
  readonly #partition: Partition;
  readonly #clock: Clock;
  readonly #inputRounds: InputRounds;
  /** Undefined when no permit had to be waited for. */
  #queuedMs: number | undefined;
  #hasPermit = false;
  #isDone = false;
  #withdraw: (() => void) | undefined;
  #inFlight: InFlightRequest | undefined;
  #leg: CallLeg | undefined;
  /** What the last attempt was sent in. */
  #session: UpstreamSession | undefined;
  #slot: SessionSlot | undefined;
  #retryTimer: TimerHandle | undefined;

  constructor({ exchange, tool, clock, inputRounds }: ToolCallOptions) {
    this.#exchange = exchange;
    this.#tool = tool;
    this.#partition = tool.link.partition;
    this.#clock = clock;
    this.#inputRounds = inputRounds;
  }

  start(): void {
    const { record, body } = this.#exchange;
    const { server } = this.#partition.target;
    record.serverId = `${server.namespace}/${server.name}`;
    record.alias = server.alias;
    record.remoteToolName = this.#tool.remote.name;
    record.connectionGeneration = this.#partition.generation;
    if (body.length > server.limits.maxRequestBytes) {
      answerError(this.#exchange, new FairleadError('REQUEST_TOO_LARGE'));
      return;
    }
    this.#exchange.onCancelled(() => this.#cancel());
    // An agent that went away while the catalog was being read wants nothing any more.
    if (this.#isDone) return;
    this.#withdraw = this.#partition.semaphore.acquire(this);
    if (this.#withdraw !== undefined) this.#queuedMs = this.#clock.monotonicMs();
  }

  granted(): void {
    this.#withdraw = undefined;
    this.#hasPermit = true;
    this.#partition.lease();
    this.#noteQueueWait();
    this.#attempt();
  }

  refused(reason: RefusalReason): void {
    this.#isDone = true;
    this.#noteQueueWait();
    answerError(
      this.#exchange,
      new FairleadError(reason === 'closed' ? 'SERVER_REMOVED' : 'SERVER_BUSY', {
        logDetail: reason,
      }),
    );
  }

  #noteQueueWait(): void {
    if (this.#queuedMs === undefined) return;
    this.#exchange.record.queueWaitMs = this.#clock.monotonicMs() - this.#queuedMs;
  }

  #attempt(): void {
    this.#session = undefined;
    this.#exchange.record.attempts += 1;
    try {
      const side = this.#partition.negotiator.sideFor(this.#exchange.era);
      if (side instanceof Promise) this.#after(side, (known) => this.#openOn(known));
      else this.#openOn(side);
    } catch (error) {
      this.#failBeforeSending(error);
    }
  }

  #openOn(side: Side): void {
    if (side.era === 'modern') {
      this.#send(side, undefined, undefined);
      return;
    }
    const agentSession = this.#exchange.session;
    const slot =
      agentSession === undefined
        ? this.#partition.sharedSession
        : this.#partition.sessionFor(agentSession);
    const session = slot.get();
    if (session instanceof Promise)
      this.#after(session, (open) => this.#send(open.side, open, slot));
    else this.#send(session.side, session, slot);
  }

  #send(side: Side, session: UpstreamSession | undefined, slot: SessionSlot | undefined): void {
    this.#session = session;
    this.#slot = slot;
    const { target } = this.#partition;
    // Without a session id, the server knows one space of request ids for all who call it.
    const isShared =
      session !== undefined && (this.#exchange.session === undefined || session.id === undefined);
    const upstreamId = isShared ? this.#partition.nextRequestId() : undefined;
    const leg = new CallLeg({
      exchange: this.#exchange,
      tool: this.#tool,
      target,
      side,
      session,
      upstreamId,
    });
    this.#leg = leg;
    const answer = new AnswerRelay({
      exchange: this.#exchange,
      leg,
      inputRounds: this.#inputRounds,
      partitionKey: this.#partition.key,
      maxInputRounds: target.server.limits.maxInputRounds,
      call: this,
    });
    this.#inFlight = sendRequest(target, leg.outgoing, answer);
    answer.bind(this.#inFlight);
  }

  /** Continues with a cold step's outcome, unless the call ended meanwhile. */
  #after<Value>(step: Promise<Value>, then: (value: Value) => void): void {
    step
      .then((value) => {
        if (!this.#isDone) then(value);
      })
      .catch((error: unknown) => this.#failBeforeSending(error));
  }

  /** Negotiation or the handshake failed: the call itself was never sent. */
  #failBeforeSending(error: unknown): void {
    if (this.#isDone) return;
    const known = asFairleadError(error);
    if (known.code === 'INTERNAL_ERROR') {
      this.#answerAndRelease(known);
      return;
    }
    const code = known.code === 'OUTCOME_UNKNOWN' ? 'SERVER_UNAVAILABLE' : known.code;
    this.failed({ code, sent: 'no', detail: known.logDetail ?? '' }, false);
  }

  answered(): void {
    this.#release();
  }

  refusedByServer(): void {
    this.#tool.link.doubt(this.#exchange.era);
  }

  failed(failure: UpstreamFailure, hasAnswerBegun: boolean): void {
    if (this.#isDone) return;
    this.#inFlight = undefined;
    const { record, era } = this.#exchange;
    if (failure.code === 'SESSION_LOST' && this.#session !== undefined)
      this.#slot?.forget(this.#session);
    if (WAYS_REFUSED.has(failure.code)) this.#tool.link.doubt(era);
    const verdict = decideFailure({
      failure,
      effect: this.#tool.effect,
      attempts: record.attempts,
      maxRetries: this.#partition.target.server.limits.maxRetries,
      hasAnswerBegun,
    });
    if (verdict.kind === 'retry') {
      this.#retryLater(failure);
      return;
    }
    const error = new FairleadError(verdict.code, { logDetail: failure.detail });
    if (SERVER_FAULTS.has(failure.code)) this.#tool.link.listings[era].noteUnavailable(error);
    this.#answerAndRelease(error);
  }

  #retryLater(failure: UpstreamFailure): void {
    const { limits } = this.#partition.target.server;
    const delayMs = Math.max(
      failure.retryAfterMs ?? 0,
      RETRY_DELAY_MS * 2 ** (this.#exchange.record.attempts - 1),
    );
    if (delayMs > limits.queueTimeoutMs) {
      this.#answerAndRelease(new FairleadError(failure.code, { logDetail: failure.detail }));
      return;
    }
    this.#retryTimer = this.#clock.setTimer(delayMs, () => this.#attempt());
  }

  #answerAndRelease(error: FairleadError): void {
    this.#release();
    answerError(this.#exchange, error);
  }

  /** The agent went away or cancelled: the server is told in the way of its era. */
  #cancel(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#retryTimer?.cancel();
    if (this.#withdraw !== undefined) this.#withdraw();
    if (this.#inFlight !== undefined) {
      this.#leg?.cancel();
      this.#inFlight.abort();
    }
    this.#exchange.record.resultClass = 'cancelled';
    this.#exchange.record.finish();
    this.#giveBack();
  }

  #release(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#giveBack();
  }

  #giveBack(): void {
    if (!this.#hasPermit) return;
    this.#hasPermit = false;
    this.#partition.semaphore.release();
    this.#partition.release();
  }
}
