// What a resource server says of itself (RFC 9728 section 2): whether it speaks of the resource that
// is configured, and which of its authorization servers may be used. Pure. The document is a
// server's word; it is compared with the configuration and widens nothing.

import type { JsonObject } from '#core/egress/read-document.ts';
import { judgeServerUrl } from './judge-server-url.ts';
import type { UrlRules } from './judge-server-url.ts';

export interface ResourceRules extends UrlRules {
  /** RFC 8707 resource as configured, byte for byte. */
  readonly resource: string;
  /** Issuers as configured; when there are any, no other is used. */
  readonly issuers: readonly string[];
}

export interface RefusedIssuer {
  /** Undefined when it is no text, or too long to repeat. */
  readonly issuer: string | undefined;
  readonly reason: string;
}

export interface ProtectedResource {
  /** As the document has it. */
  readonly resource: string;
  /** Byte for byte: its metadata must repeat it so. */
  readonly issuer: string;
  readonly scopes: readonly string[];
  readonly refusedIssuers: readonly RefusedIssuer[];
}

export type ResourceVerdict =
  | { readonly kind: 'resource'; readonly resource: ProtectedResource }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      readonly refusedIssuers: readonly RefusedIssuer[];
    };

const MAX_ISSUERS = 16;
const MAX_SHOWN = 256;

export function judgeProtectedResource(
  document: JsonObject,
  rules: ResourceRules,
): ResourceVerdict {
  const resource = own(document, 'resource');
  if (typeof resource !== 'string') return refused('resource-missing');
  if (!coversResource(resource, rules)) return refused('resource-mismatch');
  const servers = own(document, 'authorization_servers');
  if (servers === undefined) return refused('authorization-servers-missing');
  if (!Array.isArray(servers)) return refused('authorization-servers-malformed');
  const refusedIssuers: RefusedIssuer[] = [];
  for (const issuer of servers.slice(0, MAX_ISSUERS) as readonly unknown[]) {
    const fault = issuerFault(issuer, rules);
    if (fault === undefined && typeof issuer === 'string') {
      const scopes = textList(own(document, 'scopes_supported'));
      return { kind: 'resource', resource: { resource, issuer, scopes, refusedIssuers } };
    }
    refusedIssuers.push({ issuer: shown(issuer), reason: fault ?? 'not-a-string' });
  }
  return refused('no-usable-issuer', refusedIssuers);
}

/**
 * The configured resource itself, or what it lies under: the same origin and a path that ends at a
 * boundary of the endpoint's. Another origin must be named exactly.
 */
function coversResource(named: string, { resource, endpoint }: ResourceRules): boolean {
  if (named === resource) return true;
  const url = named.includes('#') ? null : URL.parse(named);
  if (url === null || url.search !== '' || url.username !== '' || url.password !== '') return false;
  if (URL.parse(resource)?.origin !== endpoint.origin || url.origin !== endpoint.origin)
    return false;
  const base = url.pathname.endsWith('/') ? url.pathname : `${url.pathname}/`;
  return `${endpoint.pathname}/`.startsWith(base);
}

/** RFC 8414 section 2: an issuer has no query and no fragment. */
export function issuerFault(
  issuer: unknown,
  rules: UrlRules & Pick<ResourceRules, 'issuers'>,
): string | undefined {
  const verdict = judgeServerUrl(issuer, rules);
  if (verdict.kind === 'refused') return verdict.reason;
  if (/[?#]/.test(String(issuer))) return 'issuer-form';
  const isPinned = rules.issuers.length === 0 || rules.issuers.includes(String(issuer));
  return isPinned ? undefined : 'issuer-not-listed';
}

/** Never what an object only inherits. */
export function own(document: JsonObject, name: string): unknown {
  return Object.hasOwn(document, name) ? document[name] : undefined;
}

export function textList(value: unknown): readonly string[] {
  return Array.isArray(value)
    ? (value as readonly unknown[]).filter((item) => typeof item === 'string')
    : [];
}

/** Queries and user names are not repeated. */
function shown(issuer: unknown): string | undefined {
  if (typeof issuer !== 'string' || issuer.length > MAX_SHOWN) return undefined;
  return issuer.replace(/[?#].*$/s, '').replace(/\/\/[^/]*@/, '//');
}

function refused(reason: string, refusedIssuers: readonly RefusedIssuer[] = []): ResourceVerdict {
  return { kind: 'refused', reason, refusedIssuers };
}
