// How a remote server wants to be authorized: nothing, one header from a credential, or OAuth.
// Never holds a credential, only what a credential is for. Which types work in this version is
// validate-object.ts's concern (UNSUPPORTED); here they are checked in full.

import { REMOTE_URL_PATTERN } from '#core/config/remote-url.ts';

import { SET, choice, list, object, text } from './field-schemas.ts';
import { remoteUrl } from './remote-url-rules.ts';
import { celRaw, withRules } from './rule.ts';

/** Headers that carry the request itself or its path, or that Fairlead writes. */
const RESERVED_HEADERS = [
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'host',
  'keep-alive',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'origin',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
] as const;

const METADATA_URL = new RegExp(REMOTE_URL_PATTERN);
/** RFC 6749 appendix A.4. */
const SCOPE = {
  max: 256,
  pattern: '^[!#-\\[\\]-~]+$',
  hint: 'must be a scope: visible ASCII characters without blanks, quotes and backslashes',
};

const headerName = withRules(
  text(
    'Name of the header, for example "Authorization" or "X-Api-Key". Its value comes from a credential, never from this resource.',
    {
      max: 64,
      pattern: '^[A-Za-z][A-Za-z0-9-]*$',
      hint: 'must be a header name: a letter, then letters, digits and "-"',
    },
  ),
  [
    {
      cel: `!(self.lowerAscii() in [${RESERVED_HEADERS.map((name) => `'${name}'`).join(', ')}])`,
      message: 'must not be a header that belongs to HTTP, to MCP or to Fairlead',
      reason: 'FieldValueForbidden',
      check: (name) => !(RESERVED_HEADERS as readonly string[]).includes(name.toLowerCase()),
    },
  ],
);

const client = withRules(
  object('How Fairlead is known to the authorization server.', {
    type: choice(
      'Preregistered: the client id was registered by hand. MetadataDocument: the client id is the URL of a client metadata document. Dynamic: dynamic client registration.',
      ['Preregistered', 'MetadataDocument', 'Dynamic'],
    ),
    id: text(
      "Client id. Required for Preregistered, an https URL for MetadataDocument (default: the installation's own document), not allowed for Dynamic.",
      {
        max: 512,
        pattern: '^[!-~]+$',
        hint: 'must be visible ASCII characters without blanks',
      },
    ).optional(),
  }),
  [
    {
      cel: "self.type != 'Preregistered' || has(self.id)",
      message: 'must be given when type is Preregistered',
      path: '.id',
      reason: 'FieldValueRequired',
      check: ({ type, id }) => type !== 'Preregistered' || id !== undefined,
    },
    {
      cel: "self.type != 'Dynamic' || !has(self.id)",
      message: 'must not be given when type is Dynamic',
      path: '.id',
      reason: 'FieldValueForbidden',
      check: ({ type, id }) => type !== 'Dynamic' || id === undefined,
    },
    {
      cel: `self.type != 'MetadataDocument' || !has(self.id) || (self.id.startsWith('https://') && self.id.matches(${celRaw(REMOTE_URL_PATTERN)}))`,
      message: 'must be an https URL when type is MetadataDocument',
      path: '.id',
      check: ({ type, id }) => type !== 'MetadataDocument' || id === undefined || isMetadataUrl(id),
    },
  ],
);

function isMetadataUrl(id: string): boolean {
  return id.startsWith('https://') && METADATA_URL.test(id);
}

const oauth = withRules(
  object('OAuth: Fairlead is the client, the remote server the resource server.', {
    resource: remoteUrl(
      'RFC 8707 resource indicator, kept byte for byte: the origin ("https://host") or with a path ("https://host/mcp"). Never guessed from the endpoint. Its host and port must be listed in egress.',
    ),
    issuer: remoteUrl(
      'Issuer of the authorization server. Required with a preregistered client; must be listed in egress.issuers.',
    ).optional(),
    grant: choice('How an access token is obtained.', [
      'AuthorizationCode',
      'ClientCredentials',
      'JwtBearer',
      'TokenExchange',
      'EnterpriseManaged',
    ]).default('AuthorizationCode'),
    client,
    redirectUri: remoteUrl(
      'Where the authorization server sends the browser back to. Required for AuthorizationCode. Never widens egress.',
    ).optional(),
    scopes: list('Scopes to ask for. Must not be empty.', text('A scope.', SCOPE), {
      min: 1,
      max: 64,
      kind: SET,
    }),
  }),
  [
    {
      cel: "self.client.type != 'Preregistered' || has(self.issuer)",
      message:
        'must be given when client.type is Preregistered: its id belongs to one authorization server',
      path: '.issuer',
      reason: 'FieldValueRequired',
      check: (value) => value.client.type !== 'Preregistered' || value.issuer !== undefined,
    },
    {
      cel: "self.grant != 'AuthorizationCode' || has(self.redirectUri)",
      message: 'must be given when grant is AuthorizationCode',
      path: '.redirectUri',
      reason: 'FieldValueRequired',
      check: (value) => value.grant !== 'AuthorizationCode' || value.redirectUri !== undefined,
    },
  ],
);

const staticHeader = object('One header with a fixed credential.', { name: headerName });

export const authorizationSchema = withRules(
  object('How the remote server wants to be authorized.', {
    type: choice(
      'None: the server needs no credential. StaticHeader: one header. OAuth: access tokens.',
      ['None', 'StaticHeader', 'OAuth'],
    ).default('None'),
    staticHeader: staticHeader.optional(),
    oauth: oauth.optional(),
  }),
  [
    {
      cel: "self.type != 'StaticHeader' || has(self.staticHeader)",
      message: 'must be given when type is StaticHeader',
      path: '.staticHeader',
      reason: 'FieldValueRequired',
      check: (value) => value.type !== 'StaticHeader' || value.staticHeader !== undefined,
    },
    {
      cel: "self.type == 'StaticHeader' || !has(self.staticHeader)",
      message: 'must be given only when type is StaticHeader',
      path: '.staticHeader',
      reason: 'FieldValueForbidden',
      check: (value) => value.type === 'StaticHeader' || value.staticHeader === undefined,
    },
    {
      cel: "self.type != 'OAuth' || has(self.oauth)",
      message: 'must be given when type is OAuth',
      path: '.oauth',
      reason: 'FieldValueRequired',
      check: (value) => value.type !== 'OAuth' || value.oauth !== undefined,
    },
    {
      cel: "self.type == 'OAuth' || !has(self.oauth)",
      message: 'must be given only when type is OAuth',
      path: '.oauth',
      reason: 'FieldValueForbidden',
      check: (value) => value.type === 'OAuth' || value.oauth === undefined,
    },
  ],
);
