// One dispatch through a pool, with everything that its handler is told, in order, and the
// controller in the hands of the test.

import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';

import type { Dispatcher } from 'undici';

import { classifyUpstreamError } from '#core/egress/classify-upstream-error.ts';
import type { GuardedPool } from '#core/egress/guarded-pool.ts';

type Told = 'start' | 'head' | 'data' | 'end' | 'error';

export class RecordedCall implements Dispatcher.DispatchHandler {
  readonly told: Told[] = [];
  readonly ended = Promise.withResolvers<void>();
  readonly started = Promise.withResolvers<void>();
  controller: Dispatcher.DispatchController | undefined;
  status: number | undefined;
  headers: IncomingHttpHeaders | undefined;
  body = '';
  error: Error | undefined;
  /** Runs within each event. */
  readonly #onTold: (told: Told, call: RecordedCall) => void;

  constructor(onTold: (told: Told, call: RecordedCall) => void = () => {}) {
    this.#onTold = onTold;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    this.started.resolve();
    this.#tell('start');
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    this.status = status;
    this.headers = headers;
    this.#tell('head');
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.body += chunk.toString('latin1');
    this.#tell('data');
  }

  onResponseEnd(): void {
    this.ended.resolve();
    this.#tell('end');
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.error = error;
    this.ended.resolve();
    this.#tell('error');
  }

  #tell(told: Told): void {
    this.told.push(told);
    this.#onTold(told, this);
  }
}

export function dispatchTo(
  pool: GuardedPool,
  options: Partial<Dispatcher.DispatchOptions> = {},
  call: RecordedCall = new RecordedCall(),
): RecordedCall {
  pool.dispatch({ method: 'POST', path: '/mcp', body: '{}', ...options }, call);
  return call;
}

export async function bodyOf(call: RecordedCall): Promise<string> {
  await call.ended.promise;
  assert.equal(call.error, undefined);
  return call.body;
}

export async function failureOf(call: RecordedCall): Promise<Error> {
  await call.ended.promise;
  assert.ok(call.error !== undefined, 'the call failed');
  return call.error;
}

/** Whether the server may have acted on it. */
export function verdictOf(call: RecordedCall): 'not-sent' | 'unknown' {
  return classifyUpstreamError(call.error, call.told.includes('start')).kind;
}
