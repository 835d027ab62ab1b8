// Runs one undici dispatch through a guarded pool and tells how it ended, as a relay would see it.

import type { Dispatcher } from 'undici';

import { classifyUpstreamError } from '#core/egress/classify-upstream-error.ts';
import type { UpstreamErrorClass } from '#core/egress/classify-upstream-error.ts';
import type { GuardedPool } from '#core/egress/guarded-pool.ts';

export type ExchangeOutcome =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly body: string;
      readonly headers: Readonly<Record<string, unknown>>;
    }
  | {
      readonly kind: 'error';
      readonly error: Error;
      readonly class: UpstreamErrorClass;
      readonly wasStarted: boolean;
    };

export function exchange(
  pool: GuardedPool,
  options: Partial<Dispatcher.DispatchOptions> = {},
): Promise<ExchangeOutcome> {
  return new Promise((resolve) => {
    let wasStarted = false;
    let status = 0;
    let headers: Readonly<Record<string, unknown>> = {};
    const chunks: Buffer[] = [];
    pool.dispatch(
      { method: 'POST', path: '/mcp', body: '{}', ...options },
      {
        onRequestStart() {
          wasStarted = true;
        },
        onResponseStart(_controller, statusCode, responseHeaders) {
          status = statusCode;
          headers = responseHeaders;
        },
        onResponseData(_controller, chunk) {
          chunks.push(chunk);
        },
        onResponseEnd() {
          resolve({
            kind: 'answer',
            status,
            headers,
            body: Buffer.concat(chunks).toString('utf8'),
          });
        },
        onResponseError(_controller, error) {
          resolve({
            kind: 'error',
            error,
            class: classifyUpstreamError(error, wasStarted),
            wasStarted,
          });
        },
      },
    );
  });
}
