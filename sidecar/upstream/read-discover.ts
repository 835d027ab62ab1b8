// What a server's answer to `server/discover` proves about its era (MCP 2026-07-28, Versioning,
// "Backward Compatibility"; Streamable HTTP). Pure. Only a positive proof makes a server modern:
// servers of the older era answer an unknown method in every way there is. And a modern server
// that names no version of ours is never taken for an old one.

import { LEGACY_VERSIONS, MODERN_VERSIONS } from '#core/config/sidecar-config.ts';
import type { ProtocolVersion } from '#core/config/sidecar-config.ts';

import { isObject } from './control-request.ts';
import type { ControlAnswer, Members } from './control-request.ts';
import { readServerInfo } from './read-server-info.ts';
import { SERVER_INFO_KEY } from './splice-json.ts';
import type { Side } from './upstream-types.ts';

export type DiscoverVerdict =
  | { readonly kind: 'modern'; readonly side: Side }
  /** The server is modern and names another version that is allowed: ask again with that one. */
  | { readonly kind: 'retry'; readonly version: ProtocolVersion }
  /** No proof: the server gets an `initialize`. */
  | { readonly kind: 'not-modern'; readonly detail: string }
  /** Modern for certain, and without a common version. */
  | { readonly kind: 'no-version'; readonly supported: string }
  /** Modern for certain, and it refuses the question itself. */
  | { readonly kind: 'refused'; readonly detail: string };

const HEADER_MISMATCH = -32020;
const MISSING_CAPABILITY = -32021;
const UNSUPPORTED_VERSION = -32022;

/** Judges the answer to a discover that named `asked`. */
export function readDiscover(
  answer: ControlAnswer,
  asked: ProtocolVersion,
  allowed: readonly ProtocolVersion[],
): DiscoverVerdict {
  return answer.kind === 'result'
    ? readResult(answer.result, allowed)
    : readError(answer, asked, allowed);
}

function readResult(result: Members, allowed: readonly ProtocolVersion[]): DiscoverVerdict {
  const supported = stringsOf(result['supportedVersions']);
  if (supported === undefined)
    return { kind: 'not-modern', detail: 'the answer to server/discover has no supportedVersions' };
  const version = newestModern(allowed, supported);
  if (version === undefined) return withoutCommonVersion(supported);
  const { capabilities } = result;
  const meta = result['_meta'];
  const serverInfo = isObject(meta) ? meta[SERVER_INFO_KEY] : undefined;
  return {
    kind: 'modern',
    side: {
      era: 'modern',
      protocolVersion: version,
      capabilities: isObject(capabilities) ? capabilities : {},
      serverInfo: readServerInfo(serverInfo),
    },
  };
}

function readError(
  { error, status }: Extract<ControlAnswer, { kind: 'error' }>,
  asked: ProtocolVersion,
  allowed: readonly ProtocolVersion[],
): DiscoverVerdict {
  const detail = `server/discover: HTTP ${status}, JSON-RPC error ${error.code}: ${JSON.stringify(error.message.slice(0, 256))}`;
  if (error.code === HEADER_MISMATCH || error.code === MISSING_CAPABILITY)
    return { kind: 'refused', detail };
  if (error.code !== UNSUPPORTED_VERSION) return { kind: 'not-modern', detail };
  const supported = stringsOf(isObject(error.data) ? error.data['supported'] : undefined);
  if (supported === undefined) return { kind: 'not-modern', detail };
  const version = newestModern(
    allowed.filter((candidate) => candidate !== asked),
    supported,
  );
  return version === undefined ? withoutCommonVersion(supported) : { kind: 'retry', version };
}

/** A list of old versions alone is an old server that has learned to answer the new question. */
function withoutCommonVersion(supported: readonly string[]): DiscoverVerdict {
  const listed = JSON.stringify(supported.slice(0, 8).map((version) => version.slice(0, 32)));
  const isOld = supported.every(
    (version) =>
      (LEGACY_VERSIONS as readonly string[]).includes(version) || version < OLDEST_MODERN,
  );
  return isOld
    ? { kind: 'not-modern', detail: `server/discover lists only ${listed}` }
    : { kind: 'no-version', supported: listed };
}

const OLDEST_MODERN: string = MODERN_VERSIONS[MODERN_VERSIONS.length - 1] ?? '';

/** Both lists may be in any order; our own constant is newest first. */
function newestModern(
  allowed: readonly ProtocolVersion[],
  supported: readonly string[],
): ProtocolVersion | undefined {
  return MODERN_VERSIONS.find(
    (version) => allowed.includes(version) && supported.includes(version),
  );
}

function stringsOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string')
    ? value
    : undefined;
}
