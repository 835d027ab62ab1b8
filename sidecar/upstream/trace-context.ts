// W3C Trace Context of the agent's request, handed on to the server when it is well formed. The
// values come from the agent and go into a header, so nothing outside the grammar passes.

import type { IncomingHttpHeaders } from 'node:http';

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** `tracestate` means nothing without its `traceparent`. */
export function appendTraceContext(into: string[], headers: IncomingHttpHeaders): void {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return;
  into.push('traceparent', traceparent);
  if (typeof tracestate === 'string' && TRACESTATE.test(tracestate))
    into.push('tracestate', tracestate);
}
