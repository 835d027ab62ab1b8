// Messages whose answer is a bare status: notifications, responses, and the DELETE of a session
// (MCP 2025-11-25, Streamable HTTP). The body of the answer is thrown away.

import { classifyUpstreamError } from '#core/egress/classify-upstream-error.ts';
import { FairleadError } from '#core/errors.ts';

import { requestOptions } from './request-options.ts';
import type { UpstreamTarget } from './upstream-types.ts';

export interface StatusRequest {
  readonly httpMethod: 'POST' | 'DELETE';
  readonly headers: readonly string[];
  readonly body?: string;
  readonly timeoutMs: number;
}

/** More than this is not worth reading for the sake of the socket. */
const MAX_DUMPED_BYTES = 65_536;

/** The status of the answer; rejects with a FairleadError when there was none in time. */
export async function sendForStatus(
  target: UpstreamTarget,
  request: StatusRequest,
): Promise<number> {
  const controller = new AbortController();
  const timer = target.clock.setTimer(request.timeoutMs, () => controller.abort());
  try {
    return await sendAlong(target, request, controller.signal);
  } catch (error) {
    if (controller.signal.aborted)
      throw new FairleadError('SERVER_UNAVAILABLE', { logDetail: 'no answer in time' });
    const { code, reason } = classifyUpstreamError(error);
    throw new FairleadError(code === 'OUTCOME_UNKNOWN' ? 'SERVER_UNAVAILABLE' : code, {
      logDetail: reason,
    });
  } finally {
    timer.cancel();
  }
}

/** Follows what a server does not act on itself, within its origin. */
async function sendAlong(
  target: UpstreamTarget,
  request: StatusRequest,
  signal: AbortSignal,
): Promise<number> {
  const { httpMethod, headers, body } = request;
  const paths = [target.path];
  for (let path: string | undefined = target.path; ; paths.push(path)) {
    const options = requestOptions(path, { method: httpMethod, headers, body });
    const answer = await target.pool.request({ ...options, signal });
    await answer.body.dump({ limit: MAX_DUMPED_BYTES, signal }).catch(() => undefined);
    path = target.pool.redirectedPath({
      status: answer.statusCode,
      headers: answer.headers,
      paths,
    });
    if (path === undefined) return answer.statusCode;
  }
}
