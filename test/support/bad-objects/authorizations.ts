// Bad authorizations: blocks that do not fit the type, missing parts of OAuth, reserved headers.

import { NONE, rowsOn, twin } from './bad-object.ts';
import type { BadObject, Row } from './bad-object.ts';

const oauth = 'spec.authorization.oauth';

type AuthorizationRow = readonly [title: string, change: Row[1], blamed: string];

/** The field to blame is below spec.authorization. */
function rows(on: BadObject['on'], list: readonly AuthorizationRow[]): readonly BadObject[] {
  const complete = list.map(
    ([title, change, blamed]): Row => [
      title,
      change,
      `spec.authorization.${blamed}`,
      NONE.authorization,
    ],
  );
  return rowsOn(on, 'R1', complete);
}

const onServer = rows('server', [
  ['OAuth without its block', { 'spec.authorization': { type: 'OAuth' } }, 'oauth'],
  [
    'StaticHeader without its block',
    { 'spec.authorization': { type: 'StaticHeader' } },
    'staticHeader',
  ],
  [
    'a static header without the type',
    { 'spec.authorization': { staticHeader: { name: 'X-Api-Key' } } },
    'staticHeader',
  ],
  [
    'a static header without name',
    { 'spec.authorization': { type: 'StaticHeader', staticHeader: {} } },
    'staticHeader.name',
  ],
  [
    'a header name with a colon',
    { 'spec.authorization': { type: 'StaticHeader', staticHeader: { name: 'X-Key:' } } },
    'staticHeader.name',
  ],
  [
    'a header that belongs to HTTP',
    { 'spec.authorization': { type: 'StaticHeader', staticHeader: { name: 'Host' } } },
    'staticHeader.name',
  ],
  [
    'a header that belongs to MCP',
    { 'spec.authorization': { type: 'StaticHeader', staticHeader: { name: 'MCP-Session-Id' } } },
    'staticHeader.name',
  ],
]);

const onOAuth = rows('oauth-server', [
  ['an OAuth block without the type', { 'spec.authorization.type': 'None' }, 'oauth'],
  ['OAuth without resource', { [`${oauth}.resource`]: undefined }, 'oauth.resource'],
  ['OAuth without scopes', { [`${oauth}.scopes`]: undefined }, 'oauth.scopes'],
  ['OAuth with empty scopes', { [`${oauth}.scopes`]: [] }, 'oauth.scopes'],
  ['two scopes in one', { [`${oauth}.scopes`]: ['read write'] }, 'oauth.scopes[0]'],
  ['a scope that is there twice', { [`${oauth}.scopes`]: ['read', 'read'] }, 'oauth.scopes[1]'],
  ['an unknown grant', { [`${oauth}.grant`]: 'Password' }, 'oauth.grant'],
  [
    'the authorization code grant without redirect URI',
    { [`${oauth}.redirectUri`]: undefined },
    'oauth.redirectUri',
  ],
  ['OAuth without client', { [`${oauth}.client`]: undefined }, 'oauth.client'],
  ['an unknown client type', { [`${oauth}.client`]: { type: 'Guest' } }, 'oauth.client.type'],
  ['a preregistered client without id', { [`${oauth}.client.id`]: undefined }, 'oauth.client.id'],
  ['a dynamic client with an id', { [`${oauth}.client.type`]: 'Dynamic' }, 'oauth.client.id'],
  [
    'a metadata document that is no URL',
    { [`${oauth}.client.type`]: 'MetadataDocument' },
    'oauth.client.id',
  ],
  [
    'a metadata document over plain http',
    { [`${oauth}.client`]: { type: 'MetadataDocument', id: 'http://console.example.com/client' } },
    'oauth.client.id',
  ],
  ['a preregistered client without issuer', { [`${oauth}.issuer`]: undefined }, 'oauth.issuer'],
  [
    'an issuer that egress does not list',
    { [`${oauth}.issuer`]: 'https://login.example.com/other' },
    'oauth.issuer',
  ],
  [
    'an issuer over plain http',
    { [`${oauth}.issuer`]: 'http://login.example.com/tenant' },
    'oauth.issuer',
  ],
]);

export const BAD_AUTHORIZATIONS: readonly BadObject[] = [
  ...rowsOn('server', 'R1', [
    [
      'an unknown authorization type',
      { 'spec.authorization': { type: 'Magic' } },
      'spec.authorization.type',
      twin('authorization.type', 'Magic'),
    ],
  ]),
  ...onServer,
  ...onOAuth,
  ...rowsOn('oauth-server', 'R2', [
    [
      'a listed issuer with a query',
      {
        'spec.egress.issuers': [
          'https://login.example.com/tenant',
          'https://login.example.com/?x=1',
        ],
      },
      'spec.egress.issuers[1]',
      NONE.authorization,
    ],
  ]),
];
