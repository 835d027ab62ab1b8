// Decides what one POSTed JSON value is: request, notification or response, and in which era it
// is to be served (MCP 2026-07-28, Versioning: the body's `_meta` claim decides, the header is
// checked against it). Pure: it reads no session, runs no method and never guesses a version.

import { LEGACY_VERSIONS, MODERN_VERSIONS } from '#core/config/sidecar-config.ts';
import type { ProtocolVersion } from '#core/config/sidecar-config.ts';
import { FairleadError } from '#core/errors.ts';

import type { Era, JsonRpcRequest, RequestId } from './exchange.ts';
import { checkMirroredHeaders, mismatch } from './mirrored-headers.ts';
import type { MirroredHeaders } from './mirrored-headers.ts';

export const VERSION_META_KEY = 'io.modelcontextprotocol/protocolVersion';
export const CAPABILITIES_META_KEY = 'io.modelcontextprotocol/clientCapabilities';

export type Classified =
  | {
      readonly kind: 'request';
      readonly era: 'modern';
      readonly request: JsonRpcRequest;
      readonly protocolVersion: ProtocolVersion;
    }
  /** The version is the header's; undefined when there was none. */
  | {
      readonly kind: 'request';
      readonly era: 'legacy';
      readonly request: JsonRpcRequest;
      readonly protocolVersion: ProtocolVersion | undefined;
    }
  | {
      readonly kind: 'notification';
      readonly era: Era;
      readonly method: string;
      readonly params: JsonRpcRequest['params'] | undefined;
    }
  | { readonly kind: 'response' }
  | {
      readonly kind: 'refused';
      readonly era: Era;
      readonly error: FairleadError;
      readonly id: RequestId | undefined;
      readonly method: string | undefined;
    };

type Members = Readonly<Record<string, unknown>>;

export function classifyMessage(body: unknown, headers: MirroredHeaders): Classified {
  if (Array.isArray(body))
    return refused(
      'legacy',
      invalid('Batches are not supported; send each message as its own POST.'),
    );
  if (!isObject(body) || body.jsonrpc !== '2.0')
    return refused('legacy', invalid('It must be an object with "jsonrpc": "2.0".'));
  if (body.method === undefined) return classifyResponse(body, headers);
  const { method, params } = body;
  if (typeof method !== 'string' || method === '')
    return refused('legacy', invalid('"method" must be a string.'), readId(body.id));
  if (params !== undefined && !isObject(params))
    return refused('legacy', invalid('"params" must be an object.'), readId(body.id));
  return classifyNamed({ body, method, params }, headers);
}

interface NamedMessage {
  readonly body: Members;
  readonly method: string;
  readonly params: Members | undefined;
}

function classifyNamed(
  { body, method, params }: NamedMessage,
  headers: MirroredHeaders,
): Classified {
  const meta = isObject(params?._meta) ? params._meta : undefined;
  const era = eraOf(meta, headers.protocolVersion);
  if (!Object.hasOwn(body, 'id')) return { kind: 'notification', era, method, params };
  const id = readId(body.id);
  if (id === undefined)
    return {
      kind: 'refused',
      era,
      error: invalid('"id" must be a string or an integer.'),
      id,
      method,
    };
  const request: JsonRpcRequest =
    params === undefined ? { jsonrpc: '2.0', id, method } : { jsonrpc: '2.0', id, method, params };
  return era === 'modern'
    ? classifyModern(request, meta, headers)
    : classifyLegacy(request, headers.protocolVersion);
}

/** A body claim, or a header that names a modern version, asks for modern service. */
function eraOf(meta: Members | undefined, versionHeader: string | undefined): Era {
  if (meta !== undefined && Object.hasOwn(meta, VERSION_META_KEY)) return 'modern';
  return isModernVersion(versionHeader) ? 'modern' : 'legacy';
}

function classifyModern(
  request: JsonRpcRequest,
  meta: Members | undefined,
  headers: MirroredHeaders,
): Classified {
  const version = meta?.[VERSION_META_KEY];
  const error = checkModern(request, meta, headers);
  if (error === undefined && isModernVersion(version))
    return { kind: 'request', era: 'modern', request, protocolVersion: version };
  return {
    kind: 'refused',
    era: 'modern',
    error: error ?? unsupportedVersion(String(version)),
    id: request.id,
    method: request.method,
  };
}

/** The order is the specification's ladder: envelope, version agreement, version support, mirrored headers. */
function checkModern(
  request: JsonRpcRequest,
  meta: Members | undefined,
  headers: MirroredHeaders,
): FairleadError | undefined {
  const version = meta?.[VERSION_META_KEY];
  if (typeof version !== 'string') return missingMeta(VERSION_META_KEY);
  if (!isObject(meta?.[CAPABILITIES_META_KEY])) return missingMeta(CAPABILITIES_META_KEY);
  if (headers.protocolVersion !== undefined && headers.protocolVersion !== version) {
    return mismatch('MCP-Protocol-Version differs from the body.');
  }
  if (!isModernVersion(version)) return unsupportedVersion(version);
  return checkMirroredHeaders(headers, { method: request.method, params: request.params ?? {} });
}

function classifyLegacy(request: JsonRpcRequest, versionHeader: string | undefined): Classified {
  if (versionHeader === undefined || isLegacyVersion(versionHeader)) {
    return { kind: 'request', era: 'legacy', request, protocolVersion: versionHeader };
  }
  // initialize negotiates the version in its body; the header means nothing yet.
  if (request.method === 'initialize')
    return { kind: 'request', era: 'legacy', request, protocolVersion: undefined };
  return {
    kind: 'refused',
    era: 'legacy',
    error: unsupportedLegacyVersion(),
    id: request.id,
    method: request.method,
  };
}

function classifyResponse(body: Members, headers: MirroredHeaders): Classified {
  const isResponse = isObject(body.result) !== isObject(body.error);
  if (!isResponse)
    return refused(
      'legacy',
      invalid('It has no "method", and is not a response either.'),
      readId(body.id),
    );
  if (isModernVersion(headers.protocolVersion))
    return refused('modern', invalid('Clients send no responses in this protocol version.'));
  return { kind: 'response' };
}

/** Undefined when the id is missing, null, fractional or too large to come back unchanged. */
function readId(id: unknown): RequestId | undefined {
  return typeof id === 'string' || Number.isSafeInteger(id) ? (id as RequestId) : undefined;
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isModernVersion(version: unknown): version is (typeof MODERN_VERSIONS)[number] {
  return (MODERN_VERSIONS as readonly unknown[]).includes(version);
}

export function isLegacyVersion(version: unknown): version is (typeof LEGACY_VERSIONS)[number] {
  return (LEGACY_VERSIONS as readonly unknown[]).includes(version);
}

function invalid(publicDetail: string): FairleadError {
  return new FairleadError('INVALID_REQUEST', { publicDetail });
}

function missingMeta(key: string): FairleadError {
  return new FairleadError('INVALID_PARAMS', {
    publicDetail: `params._meta[${JSON.stringify(key)}] is missing or has the wrong type.`,
  });
}

/** Only modern versions are listed: a client of an older era negotiates in initialize. */
function unsupportedVersion(requested: string): FairleadError {
  return new FairleadError('UNSUPPORTED_PROTOCOL_VERSION', {
    data: { supported: MODERN_VERSIONS, requested: requested.slice(0, 64) },
  });
}

function unsupportedLegacyVersion(): FairleadError {
  return new FairleadError('INVALID_REQUEST', {
    publicDetail: `MCP-Protocol-Version must be one of ${LEGACY_VERSIONS.join(', ')}, or ${MODERN_VERSIONS.join(', ')} with the _meta that it requires.`,
  });
}

function refused(era: Era, error: FairleadError, id?: RequestId): Classified {
  return { kind: 'refused', era, error, id, method: undefined };
}
