// Takes one answer of a guarded pool into memory, within bounds: so many bytes, no content coding,
// one deadline for everything. Settles once and never throws; a request that is given up while it
// waits for a socket is never sent.

import type { IncomingHttpHeaders } from 'node:http';

import type { Dispatcher } from 'undici';

import type { Clock } from '#core/clock.ts';
import type { ErrorCode } from '#core/errors.ts';
import type { CallHandler } from './call-exchange.ts';
import { classifyUpstreamError } from './classify-upstream-error.ts';
import { EgressError } from './egress-error.ts';
import type { DenyReason, EgressStage, FailureReason } from './egress-policy.ts';
import type { GuardedPool } from './guarded-pool.ts';

export type AnswerFault = 'too-large' | 'content-coding' | 'deadline' | 'cancelled';

export type CollectedAnswer =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly body: Buffer;
    }
  | {
      readonly kind: 'denied';
      readonly stage: EgressStage;
      readonly reason: DenyReason | FailureReason;
    }
  | {
      readonly kind: 'failed';
      readonly code: ErrorCode;
      readonly reason: string;
      readonly wasSent: boolean;
    };

export interface CollectLimits {
  readonly clock: Clock;
  readonly deadlineMs: number;
  readonly maxBytes: number;
  readonly signal?: AbortSignal | undefined;
}

export function collectAnswer(
  pool: GuardedPool,
  request: Dispatcher.DispatchOptions,
  limits: CollectLimits,
): Promise<CollectedAnswer> {
  return new Promise((resolve) => {
    new Collector(limits, resolve).send(pool, request);
  });
}

const FAULT_CODES: Readonly<Record<AnswerFault, ErrorCode>> = {
  'too-large': 'RESPONSE_TOO_LARGE',
  'content-coding': 'UPSTREAM_PROTOCOL_ERROR',
  deadline: 'CALL_TIMED_OUT',
  cancelled: 'OUTCOME_UNKNOWN',
};

class Collector implements CallHandler {
  readonly #limits: CollectLimits;
  readonly #resolve: (answer: CollectedAnswer) => void;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #head: { readonly status: number; readonly headers: IncomingHttpHeaders } | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #isOver = false;
  #release = (): void => {};

  constructor(limits: CollectLimits, resolve: (answer: CollectedAnswer) => void) {
    this.#limits = limits;
    this.#resolve = resolve;
  }

  get isGone(): boolean {
    return this.#isOver;
  }

  send(pool: GuardedPool, request: Dispatcher.DispatchOptions): void {
    const { clock, deadlineMs, signal } = this.#limits;
    if (signal?.aborted === true || deadlineMs <= 0) {
      this.#giveUp(deadlineMs <= 0 ? 'deadline' : 'cancelled');
      return;
    }
    const timer = clock.setTimer(deadlineMs, () => this.#giveUp('deadline'));
    const onAbort = (): void => this.#giveUp('cancelled');
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#release = () => {
      timer.cancel();
      signal?.removeEventListener('abort', onAbort);
    };
    pool.dispatch(request, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#isOver) controller.abort(new Error('given up'));
    else this.#controller = controller;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    this.#head = { status, headers };
    const coding = headers['content-encoding'];
    // Asked for nothing but bytes as they are: a few of them must not become a hundred megabytes.
    if (coding !== undefined && coding !== 'identity') this.#giveUp('content-coding');
    else if (Number(headers['content-length']) > this.#limits.maxBytes) this.#giveUp('too-large');
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#limits.maxBytes) this.#giveUp('too-large');
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (this.#head === undefined) return;
    this.#settle({ kind: 'answer', ...this.#head, body: Buffer.concat(this.#chunks) });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (error instanceof EgressError && error.code === 'EGRESS_DENIED') {
      this.#settle({ kind: 'denied', stage: error.stage, reason: error.reason });
      return;
    }
    const { kind, code, reason } = classifyUpstreamError(error, this.#controller !== undefined);
    this.#settle({ kind: 'failed', code, reason, wasSent: kind !== 'not-sent' });
  }

  #giveUp(fault: AnswerFault): void {
    const wasSent = this.#controller !== undefined;
    this.#settle({ kind: 'failed', code: FAULT_CODES[fault], reason: fault, wasSent });
    this.#controller?.abort(new Error(fault));
  }

  #settle(answer: CollectedAnswer): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#release();
    this.#resolve(answer);
  }
}
