// Requests that a legacy server sends on the stream of one of ours (MCP 2025-11-25). We declare no
// capabilities, so only `ping` has an answer; everything else gets an error at once, since a
// server that waits for an answer holds up the call that it belongs to.

import type { Members } from './control-request.ts';
import { sendForStatus } from './send-for-status.ts';
import type { UpstreamSession, UpstreamTarget } from './upstream-types.ts';

const METHOD_NOT_FOUND = -32601;
const TIMEOUT_MS = 5_000;

/** Best effort; never rejects. Messages without an id or a method are no requests and get nothing. */
export async function answerServerRequest(
  target: UpstreamTarget,
  session: UpstreamSession,
  message: Members,
): Promise<void> {
  const { id, method } = message;
  if ((typeof id !== 'string' && typeof id !== 'number') || typeof method !== 'string') return;
  const outcome =
    method === 'ping'
      ? { result: {} }
      : {
          error: {
            code: METHOD_NOT_FOUND,
            message: 'This client declared no capability for this request',
          },
        };
  await postInSession(target, session, { jsonrpc: '2.0', id, ...outcome });
}

/** notifications/cancelled for one of our requests: in this era a closed stream cancels nothing. Never rejects. */
export async function cancelLegacy(
  target: UpstreamTarget,
  session: UpstreamSession,
  upstreamId: string | number,
): Promise<void> {
  await postInSession(target, session, {
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId: upstreamId, reason: 'the client no longer waits for the answer' },
  });
}

async function postInSession(
  target: UpstreamTarget,
  session: UpstreamSession,
  message: object,
): Promise<void> {
  try {
    await sendForStatus(target, {
      httpMethod: 'POST',
      headers: session.headers,
      body: JSON.stringify(message),
      timeoutMs: TIMEOUT_MS,
    });
  } catch (error) {
    target.log.debug(
      { err: error, alias: target.server.alias },
      'message to the server not delivered',
    );
  }
}
