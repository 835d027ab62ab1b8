// Messages whose answer is a bare status: notifications, responses, and the DELETE of a session
// (MCP 2025-11-25, Streamable HTTP). The body of the answer is thrown away.

import { classifyUpstreamError } from '#core/egress/classify-upstream-error.ts';
import { FairleadError } from '#core/errors.ts';
import { USER_AGENT } from '#core/version.ts';

import type { UpstreamTarget } from './upstream-types.ts';

export interface StatusRequest {
  readonly httpMethod: 'POST' | 'DELETE';
  readonly headers: readonly string[];
  readonly body?: string;
  readonly timeoutMs: number;
}

const ACCEPT = ['accept', 'application/json, text/event-stream', 'user-agent', USER_AGENT];
/** More than this is not worth reading for the sake of the socket. */
const MAX_DUMPED_BYTES = 65_536;

/** The status of the answer; rejects with a FairleadError when there was none in time. */
export async function sendForStatus(target: UpstreamTarget, request: StatusRequest): Promise<number> {
  const { httpMethod, headers, body, timeoutMs } = request;
  const controller = new AbortController();
  const timer = target.clock.setTimer(timeoutMs, () => controller.abort());
  try {
    const contentType = body === undefined ? [] : ['content-type', 'application/json'];
    const answer = await target.pool.request({
      method: httpMethod,
      path: target.path,
      headers: [...ACCEPT, ...contentType, ...headers],
      body: body ?? null,
      signal: controller.signal,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    await answer.body.dump({ limit: MAX_DUMPED_BYTES, signal: controller.signal }).catch(() => undefined);
    return answer.statusCode;
  } catch (error) {
    if (controller.signal.aborted) throw new FairleadError('SERVER_UNAVAILABLE', { logDetail: 'no answer in time' });
    const { code, reason } = classifyUpstreamError(error);
    throw new FairleadError(code === 'OUTCOME_UNKNOWN' ? 'SERVER_UNAVAILABLE' : code, { logDetail: reason });
  } finally {
    timer.cancel();
  }
}
