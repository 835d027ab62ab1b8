// McpServer: who a remote MCP server is, what may be reached for it and which of its tools may be
// used. Written by the platform team. The one source of its type, CRD, defaults, documentation and
// offline validation. Nothing here holds a credential.

import type { z } from 'zod';

import { PROTOCOL_VERSIONS } from '#core/config/sidecar-config.ts';

import { serverLimitsSchema } from './call-limits.ts';
import { duration } from './durations.ts';
import { SET, choice, flag, int, list, mapBy, matchLabels, object } from './field-schemas.ts';
import { authorizationSchema } from './mcp-server-authorization.ts';
import { egressSchema } from './mcp-server-egress.ts';
import { listedUrlRules, remoteUrl } from './remote-url-rules.ts';
import { withRules } from './rule.ts';
import { statusFields } from './status-schema.ts';
import { toolName, toolPatterns } from './tool-fields.ts';

const protocol = object('Which protocol versions may be spoken.', {
  era: choice(
    'Auto: find out. Modern: 2026-07-28 and newer only. Legacy: 2025-11-25 and older only.',
    ['Auto', 'Modern', 'Legacy'],
  ).default('Auto'),
  versions: list(
    'Versions that may be negotiated. Must not be empty.',
    choice('A protocol version.', PROTOCOL_VERSIONS),
    { min: 1, max: 8, kind: SET },
  ).default([...PROTOCOL_VERSIONS]),
});

const override = object('What one tool really does, whatever the server says.', {
  name: toolName('Name of the tool, as the server has it.'),
  effect: choice(
    'ReadOnly: may be repeated safely. Write: changes something. Destructive: may destroy something.',
    ['ReadOnly', 'Write', 'Destructive'],
  ),
});

const tools = object('Which tools of the server may be used.', {
  allow: toolPatterns(
    'Tools that may be listed and called, by name or pattern. Must not be empty; "*" allows all.',
  ),
  trustReadOnlyHint: flag(
    "Believes the server's readOnlyHint. Otherwise a tool without an override counts as Write.",
  ).default(false),
  overrides: list('Effects of single tools.', override, { max: 512, kind: mapBy('name') }).default(
    [],
  ),
});

const allowedNamespaces = withRules(
  object('Namespaces whose bindings may use this server.', {
    from: choice(
      "Same: only the server's own namespace. All: every namespace. Selector: namespaces with certain labels.",
      ['Same', 'All', 'Selector'],
    ).default('Same'),
    selector: object('Labels of the namespaces.', {
      matchLabels: matchLabels('Labels that a namespace must all have.'),
    }).optional(),
  }),
  [
    {
      cel: "self.from != 'Selector' || has(self.selector)",
      message: 'must be given when from is Selector',
      path: '.selector',
      reason: 'FieldValueRequired',
      check: ({ from, selector }) => from !== 'Selector' || selector !== undefined,
    },
    {
      cel: "self.from == 'Selector' || !has(self.selector)",
      message: 'must be given only when from is Selector',
      path: '.selector',
      reason: 'FieldValueForbidden',
      check: ({ from, selector }) => from === 'Selector' || selector === undefined,
    },
  ],
);

const specFields = object('What the platform team says about a remote MCP server.', {
  endpoint: remoteUrl(
    'URL of the MCP endpoint, for example "https://mcp.example.com/mcp". Its host and port must be listed in egress.',
  ),
  transport: choice('How the server is spoken to.', ['StreamableHTTP']).default('StreamableHTTP'),
  suspend: flag('Takes the server out of every binding without deleting anything.').default(false),
  protocol: protocol.prefault({}),
  egress: egressSchema,
  // The API server runs the rules on the default as written: it must hold what they read.
  authorization: authorizationSchema.prefault({ type: 'None' }),
  tools,
  limits: serverLimitsSchema.prefault({}),
  cache: object('How long lists of tools are kept.', {
    defaultTtl: duration('For lists whose answer names no time.', {
      min: '0s',
      max: '8760h',
    }).default('1h'),
  }).prefault({}),
  priority: int(
    'Order among servers that offer the same tool: the highest first.',
    -1000,
    1000,
  ).default(0),
  allowedNamespaces: allowedNamespaces.prefault({ from: 'Same' }),
});

export const mcpServerSpecSchema = withRules(specFields, [
  ...listedUrlRules<z.output<typeof specFields>>({
    path: '.endpoint',
    read: (spec) => spec.endpoint,
  }),
  ...listedUrlRules<z.output<typeof specFields>>({
    path: '.authorization.oauth.resource',
    present: 'has(self.authorization.oauth)',
    read: (spec) => spec.authorization.oauth?.resource,
  }),
  {
    cel: '!has(self.authorization.oauth) || !has(self.authorization.oauth.issuer) || self.authorization.oauth.issuer in self.egress.issuers',
    message: 'must be listed in egress.issuers',
    path: '.authorization.oauth.issuer',
    check: ({ authorization: { oauth }, egress }) =>
      oauth?.issuer === undefined || egress.issuers.includes(oauth.issuer),
  },
]);

export const mcpServerStatusSchema = object('What the operator and the sidecars saw.', {
  ...statusFields,
  bindingCount: int('Bindings that name this server and may use it.', 0, 1_000_000_000).optional(),
});

export type McpServerSpec = z.output<typeof mcpServerSpecSchema>;
export type McpServerStatus = z.output<typeof mcpServerStatusSchema>;
