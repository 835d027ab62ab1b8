// What an authorization server says of itself (RFC 8414 section 2, OpenID Connect Discovery 1.0
// section 3), taken only when it is the issuer that was asked, byte for byte, and when every URL in
// it that requests could go to is allowed. Pure. Nothing of a document that fails is kept.

import type { JsonObject } from '#core/egress/read-document.ts';
import { judgeServerUrl } from './judge-server-url.ts';
import type { UrlRules } from './judge-server-url.ts';
import { own, textList } from './protected-resource-metadata.ts';

export interface AuthorizationServer {
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly authorizationEndpoint: string | undefined;
  readonly registrationEndpoint: string | undefined;
  readonly revocationEndpoint: string | undefined;
  readonly jwksUri: string | undefined;
  readonly scopesSupported: readonly string[];
  readonly grantTypes: readonly string[];
  readonly tokenEndpointAuthMethods: readonly string[];
  /** RFC 9207: authorization responses carry `iss`. */
  readonly sendsIssuer: boolean;
  readonly supportsClientIdMetadata: boolean;
}

export type AuthorizationServerVerdict =
  | { readonly kind: 'server'; readonly server: AuthorizationServer }
  | { readonly kind: 'refused'; readonly reason: string; readonly member: string };

/** RFC 8414 section 2: what is meant when the member is absent. */
const DEFAULT_GRANT_TYPES = ['authorization_code', 'implicit'];
const DEFAULT_AUTH_METHODS = ['client_secret_basic'];
const REDIRECT_GRANTS: ReadonlySet<string> = new Set(DEFAULT_GRANT_TYPES);

export function judgeAuthorizationServer(
  document: JsonObject,
  issuer: string,
  rules: UrlRules,
): AuthorizationServerVerdict {
  if (own(document, 'issuer') !== issuer) return refused('issuer', 'issuer-mismatch');
  const fault = findUrlFault(document, rules);
  if (fault !== undefined) return fault;
  const text = (name: string): string | undefined => {
    const value = own(document, name);
    return typeof value === 'string' ? value : undefined;
  };
  const tokenEndpoint = text('token_endpoint');
  if (tokenEndpoint === undefined) return refused('token_endpoint', 'missing');
  const grantTypes = listOr(document, 'grant_types_supported', DEFAULT_GRANT_TYPES);
  const authorizationEndpoint = text('authorization_endpoint');
  if (authorizationEndpoint === undefined && grantTypes.some((grant) => REDIRECT_GRANTS.has(grant)))
    return refused('authorization_endpoint', 'missing');
  const methods = textList(own(document, 'code_challenge_methods_supported'));
  // Without PKCE a stolen code is as good as a token (MCP 2026-07-28, OAuth 2.1 section 7.5.2).
  if (authorizationEndpoint !== undefined && !methods.includes('S256'))
    return refused('code_challenge_methods_supported', 'no-s256');
  return {
    kind: 'server',
    server: {
      issuer,
      tokenEndpoint,
      authorizationEndpoint,
      registrationEndpoint: text('registration_endpoint'),
      revocationEndpoint: text('revocation_endpoint'),
      jwksUri: text('jwks_uri'),
      scopesSupported: textList(own(document, 'scopes_supported')),
      grantTypes,
      tokenEndpointAuthMethods: listOr(
        document,
        'token_endpoint_auth_methods_supported',
        DEFAULT_AUTH_METHODS,
      ),
      sendsIssuer: own(document, 'authorization_response_iss_parameter_supported') === true,
      supportsClientIdMetadata: own(document, 'client_id_metadata_document_supported') === true,
    },
  };
}

/** One bad URL condemns the document: a server that names a neighbour once may do it again. */
function findUrlFault(
  document: JsonObject,
  rules: UrlRules,
): AuthorizationServerVerdict | undefined {
  const aliases = own(document, 'mtls_endpoint_aliases');
  const members = [
    ...Object.entries(document),
    ...Object.entries(isObject(aliases) ? aliases : {}),
  ];
  for (const [name, value] of members) {
    if (!isEndpointName(name)) continue;
    const verdict = judgeServerUrl(value, rules);
    if (verdict.kind === 'refused') return refused(name, verdict.reason);
    // RFC 6749 sections 3.1 and 3.2: endpoints have no fragment.
    if (String(value).includes('#')) return refused(name, 'fragment');
  }
  return undefined;
}

/** `service_documentation`, `op_policy_uri` and the like are for people and never asked for. */
function isEndpointName(name: string): boolean {
  return name.endsWith('_endpoint') || name === 'jwks_uri';
}

function listOr(
  document: JsonObject,
  name: string,
  fallback: readonly string[],
): readonly string[] {
  const value = own(document, name);
  return value === undefined ? fallback : textList(value);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refused(member: string, reason: string): AuthorizationServerVerdict {
  return { kind: 'refused', reason, member };
}
