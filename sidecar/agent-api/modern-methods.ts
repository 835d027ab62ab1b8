// What a 2026-07-28 request asks for. Stateless: nothing is inferred from earlier requests, and
// session headers are ignored (R57). Methods that are not served answer 404 with -32601.

import { MODERN_VERSIONS } from '#core/config/sidecar-config.ts';
import { FairleadError } from '#core/errors.ts';

import type { Relay } from '#sidecar/relay/relay.ts';
import { answerError, answerResult } from './answers.ts';
import type { AgentExchange } from './exchange.ts';
import { checkCallParams } from './call-params.ts';

/** What we announce changes with our version only; a client that asks again within minutes loses nothing. */
const DISCOVER_TTL_MS = 300_000;

/** A promise when the relay's method is asynchronous; the caller watches it. */
export function serveModern(exchange: AgentExchange, relay: Relay): unknown {
  const { method, params } = exchange.request;
  switch (method) {
    case 'server/discover':
      return answerResult(exchange, {
        supportedVersions: MODERN_VERSIONS,
        capabilities: { tools: {} },
        ttlMs: DISCOVER_TTL_MS,
        cacheScope: 'private',
      });
    case 'tools/list':
      return relay.listTools(exchange);
    case 'tools/call': {
      const fault = checkCallParams(params);
      return fault === undefined ? relay.callTool(exchange) : answerError(exchange, fault);
    }
    default:
      return answerError(exchange, new FairleadError('METHOD_NOT_FOUND'));
  }
}
