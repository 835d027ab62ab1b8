// What a 2025 request asks for: initialize opens a session, everything else happens in one.
// No server requests, no standalone stream and no instructions yet: none is announced.

import { LEGACY_VERSIONS } from '#core/config/sidecar-config.ts';
import type { ProtocolVersion } from '#core/config/sidecar-config.ts';
import { FairleadError } from '#core/errors.ts';

import type { Relay } from '#sidecar/relay/relay.ts';
import { SERVER_INFO, answerError, answerResult } from './answers.ts';
import { checkCallParams } from './call-params.ts';
import { isLegacyVersion } from './classify-message.ts';
import type { AgentExchange } from './exchange.ts';
import type { SessionStore } from './session-store.ts';

export const SESSION_HEADER = 'Mcp-Session-Id';

/** A promise when the relay's method is asynchronous; the caller watches it. */
export function serveLegacy(exchange: AgentExchange, relay: Relay): unknown {
  const { method, params } = exchange.request;
  switch (method) {
    case 'ping':
      return answerResult(exchange, {});
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

/** The version that both speak, or ours when the client's is unknown: the client then decides (2025-11-25, Lifecycle). */
export function negotiateLegacyVersion(requested: string): ProtocolVersion {
  return isLegacyVersion(requested) ? requested : LEGACY_VERSIONS[0];
}

export function serveInitialize(exchange: AgentExchange, sessions: SessionStore): boolean {
  const { protocolVersion, capabilities } = exchange.request.params ?? {};
  if (typeof protocolVersion !== 'string') {
    return answerError(
      exchange,
      new FairleadError('INVALID_PARAMS', {
        publicDetail: 'params.protocolVersion must be a string.',
      }),
    );
  }
  const version = negotiateLegacyVersion(protocolVersion);
  const session = sessions.open({
    protocolVersion: version,
    principal: exchange.principal,
    alias: exchange.alias,
    clientCapabilities: isObject(capabilities) ? capabilities : {},
  });
  if (session === undefined) return answerError(exchange, new FairleadError('TOO_MANY_SESSIONS'));
  exchange.record.sessionId = session.id;
  exchange.response.setHeader(SESSION_HEADER, session.id);
  return answerResult(exchange, {
    protocolVersion: version,
    capabilities: { tools: {} },
    serverInfo: SERVER_INFO,
  });
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
