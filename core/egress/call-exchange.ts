// One request of the call path, from the queue to its last event, and the controller that its
// handler gets. It tells the handler each thing at most once and nothing after the end; what the
// handler throws is told to the handler itself. The connection that carries it does the work.

import type { IncomingHttpHeaders } from 'node:http';

import type { Dispatcher } from 'undici';
import { errors } from 'undici';

/** The connection that a request is on. */
export interface ExchangeCarrier {
  /** The request was given up; nobody listens to its answer. */
  drop(): void;
  pause(): void;
  resume(): void;
}

/** undici's handler; one that may give up before its request has begun says so. */
export interface CallHandler extends Dispatcher.DispatchHandler {
  /** Nothing is expected any more, and nothing is to be told. */
  readonly isGone?: boolean;
}

export interface ExchangeContent {
  readonly head: string;
  readonly body: Uint8Array | string | null;
  readonly bodyBytes: number;
  readonly isHeadRequest: boolean;
  /** 0: none. */
  readonly headersTimeoutMs: number;
  readonly bodyTimeoutMs: number;
}

export class CallExchange implements Dispatcher.DispatchController {
  readonly #handler: CallHandler;
  #content: ExchangeContent | undefined;
  #carrier: ExchangeCarrier | undefined;
  #isEnded = false;
  #paused = false;
  #reason: Error | null = null;
  #aborted = false;

  constructor(handler: CallHandler, content?: ExchangeContent) {
    this.#handler = handler;
    this.#content = content;
  }

  get isGone(): boolean {
    return this.#handler.isGone === true;
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  get paused(): boolean {
    return this.#paused;
  }

  get reason(): Error | null {
    return this.#reason;
  }

  abort(reason?: Error): void {
    if (this.#isEnded || this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason ?? new errors.RequestAbortedError();
    const carrier = this.#carrier;
    // Still within onRequestStart: `start` sees it and writes nothing.
    if (carrier === undefined) return;
    carrier.drop();
    this.fail(this.#reason);
  }

  pause(): void {
    if (this.#isEnded || this.#paused) return;
    this.#paused = true;
    this.#carrier?.pause();
  }

  resume(): void {
    if (this.#isEnded || !this.#paused) return;
    this.#paused = false;
    this.#carrier?.resume();
  }

  /** What is to be written now; undefined when the handler does not want it any more. */
  start(carrier: ExchangeCarrier): ExchangeContent | undefined {
    const content = this.#content;
    this.#content = undefined;
    try {
      this.#handler.onRequestStart?.(this, null);
    } catch (thrown) {
      this.#aborted = true;
      this.#reason = thrown as Error;
    }
    if (this.#reason !== null) {
      this.failLater(this.#reason);
      return undefined;
    }
    this.#carrier = carrier;
    if (this.#paused) carrier.pause();
    return content;
  }

  begin(status: number, headers: IncomingHttpHeaders): void {
    try {
      this.#handler.onResponseStart?.(this, status, headers);
    } catch (thrown) {
      this.abort(thrown as Error);
    }
  }

  data(chunk: Buffer): void {
    try {
      this.#handler.onResponseData?.(this, chunk);
    } catch (thrown) {
      this.abort(thrown as Error);
    }
  }

  /** False when the handler threw. */
  end(): boolean {
    this.#isEnded = true;
    this.#carrier = undefined;
    try {
      this.#handler.onResponseEnd?.(this, {});
      return true;
    } catch (thrown) {
      this.#report(thrown as Error);
      return false;
    }
  }

  fail(error: Error): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#content = undefined;
    this.#carrier = undefined;
    this.#report(error);
  }

  /** For what ends a request within its dispatch, where a handler does not expect to hear of it. */
  failLater(error: Error): void {
    queueMicrotask(() => this.fail(error));
  }

  #report(error: Error): void {
    try {
      this.#handler.onResponseError?.(this, error);
    } catch (thrown) {
      // Nobody is left to tell: it must surface, and must not cost other requests anything.
      queueMicrotask(() => {
        throw thrown;
      });
    }
  }
}
