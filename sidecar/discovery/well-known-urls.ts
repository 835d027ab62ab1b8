// Where metadata is looked for, in the order of the specifications. Pure: only candidates, which the
// guard judges before any of them is asked. MCP 2026-07-28 authorization, "Protected Resource
// Metadata Discovery" and "Authorization Server Metadata Discovery"; RFC 9728 section 3.1, RFC 8414
// section 3.1, OpenID Connect Discovery 1.0 section 4.

const PROTECTED_RESOURCE = '/.well-known/oauth-protected-resource';
const AUTHORIZATION_SERVER = '/.well-known/oauth-authorization-server';
const OPENID = '/.well-known/openid-configuration';
/** Every level of a deep path would be a request. */
const MAX_PATHS = 5;

/** The place for the whole path, then those of its parents, then the root (R16). */
export function protectedResourceMetadataUrls(endpoint: URL): readonly URL[] {
  const segments = withoutFinalSlash(endpoint.pathname).split('/').slice(1);
  const paths = segments.map((_, index) => `/${segments.slice(0, index + 1).join('/')}`);
  const nearest = paths.filter((path) => path !== '/').toReversed();
  return [...nearest.slice(0, MAX_PATHS), ''].map(
    (path) => new URL(`${PROTECTED_RESOURCE}${path}`, endpoint.origin),
  );
}

/** Path insertion, then OpenID's insertion, then OpenID's appending. */
export function authorizationServerMetadataUrls(issuer: URL): readonly URL[] {
  const path = withoutFinalSlash(issuer.pathname);
  const places =
    path === ''
      ? [AUTHORIZATION_SERVER, OPENID]
      : [`${AUTHORIZATION_SERVER}${path}`, `${OPENID}${path}`, `${path}${OPENID}`];
  return places.map((place) => new URL(place, issuer.origin));
}

function withoutFinalSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}
