// Bad authorizations: blocks that do not fit the type, missing parts of OAuth, reserved headers.

import type { Edits } from '../edit-value.ts';
import { NONE } from './bad-object.ts';
import type { BadObject } from './bad-object.ts';

function row(title: string, on: BadObject['on'], change: Edits, path: string): BadObject {
  return { title, on, change, path: `spec.authorization.${path}`, sidecar: NONE.authorization, proves: 'R1' };
}

const oauth = 'spec.authorization.oauth';

export const BAD_AUTHORIZATIONS: readonly BadObject[] = [
  { ...row('an unknown authorization type', 'server', { 'spec.authorization': { type: 'Magic' } }, 'type'), sidecar: { config: { 'servers[0].authorization.type': 'Magic' }, path: 'servers[0].authorization.type' } },
  row('OAuth without its block', 'server', { 'spec.authorization': { type: 'OAuth' } }, 'oauth'),
  row('an OAuth block without the type', 'oauth-server', { 'spec.authorization.type': 'None' }, 'oauth'),
  row('StaticHeader without its block', 'server', { 'spec.authorization': { type: 'StaticHeader' } }, 'staticHeader'),
  row('a static header without the type', 'server', { 'spec.authorization': { staticHeader: { name: 'X-Api-Key' } } }, 'staticHeader'),
  row('a static header without name', 'server', { 'spec.authorization': { type: 'StaticHeader', staticHeader: {} } }, 'staticHeader.name'),
  row('a header name with a colon', 'server', { 'spec.authorization': { type: 'StaticHeader', staticHeader: { name: 'X-Key:' } } }, 'staticHeader.name'),
  row('a header that belongs to HTTP', 'server', { 'spec.authorization': { type: 'StaticHeader', staticHeader: { name: 'Host' } } }, 'staticHeader.name'),
  row('a header that belongs to MCP', 'server', { 'spec.authorization': { type: 'StaticHeader', staticHeader: { name: 'MCP-Session-Id' } } }, 'staticHeader.name'),
  row('OAuth without resource', 'oauth-server', { [`${oauth}.resource`]: undefined }, 'oauth.resource'),
  row('OAuth without scopes', 'oauth-server', { [`${oauth}.scopes`]: undefined }, 'oauth.scopes'),
  row('OAuth with empty scopes', 'oauth-server', { [`${oauth}.scopes`]: [] }, 'oauth.scopes'),
  row('two scopes in one', 'oauth-server', { [`${oauth}.scopes`]: ['read write'] }, 'oauth.scopes[0]'),
  row('a scope that is there twice', 'oauth-server', { [`${oauth}.scopes`]: ['read', 'read'] }, 'oauth.scopes[1]'),
  row('an unknown grant', 'oauth-server', { [`${oauth}.grant`]: 'Password' }, 'oauth.grant'),
  row('the authorization code grant without redirect URI', 'oauth-server', { [`${oauth}.redirectUri`]: undefined }, 'oauth.redirectUri'),
  row('OAuth without client', 'oauth-server', { [`${oauth}.client`]: undefined }, 'oauth.client'),
  row('an unknown client type', 'oauth-server', { [`${oauth}.client`]: { type: 'Guest' } }, 'oauth.client.type'),
  row('a preregistered client without id', 'oauth-server', { [`${oauth}.client.id`]: undefined }, 'oauth.client.id'),
  row('a dynamic client with an id', 'oauth-server', { [`${oauth}.client.type`]: 'Dynamic' }, 'oauth.client.id'),
  row('a metadata document that is no URL', 'oauth-server', { [`${oauth}.client.type`]: 'MetadataDocument' }, 'oauth.client.id'),
  row('a metadata document over plain http', 'oauth-server', { [`${oauth}.client`]: { type: 'MetadataDocument', id: 'http://console.example.com/client' } }, 'oauth.client.id'),
  row('a preregistered client without issuer', 'oauth-server', { [`${oauth}.issuer`]: undefined }, 'oauth.issuer'),
  row('an issuer that egress does not list', 'oauth-server', { [`${oauth}.issuer`]: 'https://login.example.com/other' }, 'oauth.issuer'),
  row('an issuer over plain http', 'oauth-server', { [`${oauth}.issuer`]: 'http://login.example.com/tenant' }, 'oauth.issuer'),
  { ...row('a listed issuer with a query', 'oauth-server', { 'spec.egress.issuers': ['https://login.example.com/tenant', 'https://login.example.com/?x=1'] }, ''), path: 'spec.egress.issuers[1]', proves: 'R2' },
];
