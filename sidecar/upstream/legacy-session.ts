// Opens and ends a session with a server of the legacy era (MCP 2025-11-25, Lifecycle and
// Streamable HTTP): initialize, notifications/initialized, and DELETE at the end. A session is
// never initialized again under its old id: a lost one is forgotten and a new one opened. We
// declare no client capabilities, so the server has nothing to ask us.

import { LEGACY_VERSIONS } from '#core/config/sidecar-config.ts';
import type { ProtocolVersion } from '#core/config/sidecar-config.ts';
import { FairleadError } from '#core/errors.ts';
import { CLIENT_INFO } from '#core/version.ts';

import { isObject, sendControlRequest } from './control-request.ts';
import type { ControlAnswer, Members } from './control-request.ts';
import { readServerInfo } from './read-server-info.ts';
import { sendForStatus } from './send-for-status.ts';
import type { Side, UpstreamSession, UpstreamTarget } from './upstream-types.ts';

export interface OpenSessionOptions {
  /** What initialize offers; the server may answer with another version that is allowed for it. */
  readonly protocolVersion: ProtocolVersion;
  readonly clientCapabilities: Members;
}

const CLOSE_TIMEOUT_MS = 1_000;
/** The specification allows visible ASCII; the length is ours. */
const SESSION_ID = /^[\x21-\x7e]{1,1024}$/;

export async function openLegacySession(
  target: UpstreamTarget,
  options: OpenSessionOptions,
): Promise<UpstreamSession> {
  const { protocolVersion, clientCapabilities } = options;
  const answer = await sendControlRequest(target, {
    method: 'initialize',
    params: { protocolVersion, capabilities: clientCapabilities, clientInfo: CLIENT_INFO },
    headers: [],
    timeoutMs: target.server.limits.requestTimeoutMs,
  });
  const handshake = readHandshake(answer, protocolVersion);
  const allowed = target.server.protocol.versions;
  const session = new LegacySession(target, handshake);
  if (!isLegacy(handshake.protocolVersion) || !allowed.includes(handshake.protocolVersion)) {
    await session.close();
    throw unsupportedVersion(protocolVersion, handshake.protocolVersion);
  }
  try {
    await announceInitialized(target, session.headers);
  } catch (error) {
    await session.close();
    throw error;
  }
  return session;
}

interface Handshake {
  readonly protocolVersion: string;
  readonly sessionId: string | undefined;
  readonly result: Members;
}

/** The server's answer to initialize; a refusal is UPSTREAM_REFUSED, nonsense a protocol error. */
function readHandshake(answer: ControlAnswer, requested: string): Handshake {
  if (answer.kind === 'error') {
    const { code, message } = answer.error;
    throw new FairleadError('UPSTREAM_REFUSED', {
      logDetail: `initialize (${requested}): JSON-RPC error ${code}: ${JSON.stringify(message.slice(0, 256))}`,
    });
  }
  const { result, sessionId } = answer;
  const protocolVersion = result['protocolVersion'];
  if (typeof protocolVersion !== 'string')
    throw new FairleadError('UPSTREAM_PROTOCOL_ERROR', {
      logDetail: 'initialize was answered without a protocolVersion',
    });
  if (sessionId !== undefined && !SESSION_ID.test(sessionId))
    throw new FairleadError('UPSTREAM_PROTOCOL_ERROR', {
      logDetail: 'the session id has characters that are not allowed',
    });
  return { protocolVersion, sessionId, result };
}

async function announceInitialized(
  target: UpstreamTarget,
  headers: readonly string[],
): Promise<void> {
  const body = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
  const status = await sendForStatus(target, {
    httpMethod: 'POST',
    headers,
    body,
    timeoutMs: target.server.limits.requestTimeoutMs,
  });
  if (status >= 500)
    throw new FairleadError('SERVER_UNAVAILABLE', {
      logDetail: `notifications/initialized: HTTP ${status}`,
    });
  if (status >= 300)
    throw new FairleadError('UPSTREAM_REFUSED', {
      logDetail: `notifications/initialized: HTTP ${status}`,
    });
}

class LegacySession implements UpstreamSession {
  readonly id: string | undefined;
  readonly side: Side;
  readonly headers: readonly string[];
  readonly #target: UpstreamTarget;
  #closing: Promise<void> | undefined;

  constructor(target: UpstreamTarget, { protocolVersion, sessionId, result }: Handshake) {
    const { capabilities, serverInfo } = result;
    this.#target = target;
    this.id = sessionId;
    this.side = {
      era: 'legacy',
      // Checked by the opener before anyone sees the session.
      protocolVersion: protocolVersion as ProtocolVersion,
      capabilities: isObject(capabilities) ? capabilities : {},
      serverInfo: readServerInfo(serverInfo),
    };
    const version = ['mcp-protocol-version', protocolVersion];
    this.headers = sessionId === undefined ? version : ['mcp-session-id', sessionId, ...version];
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    if (this.id === undefined || !this.#target.server.limits.terminateOnClose) return;
    try {
      // Any status is fine: 405 says that the server ends its sessions itself, 404 that it has.
      await sendForStatus(this.#target, {
        httpMethod: 'DELETE',
        headers: this.headers,
        timeoutMs: CLOSE_TIMEOUT_MS,
      });
    } catch (error) {
      this.#target.log.debug(
        { err: error, alias: this.#target.server.alias },
        'session not deleted',
      );
    }
  }
}

function isLegacy(version: string): version is (typeof LEGACY_VERSIONS)[number] {
  return (LEGACY_VERSIONS as readonly string[]).includes(version);
}

/** Both values are shown: who allowed what, and who answered what (R62). */
export function unsupportedVersion(requested: string, answered: string): FairleadError {
  return new FairleadError('UPSTREAM_VERSION_UNSUPPORTED', {
    logDetail: `asked for ${requested}, the server answered ${JSON.stringify(answered.slice(0, 64))}`,
  });
}
