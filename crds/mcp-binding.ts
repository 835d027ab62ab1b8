// McpBinding: which workload may use which servers, as whom, and how its sidecar runs. Lives in
// the workload's namespace. The one source of its type, CRD, defaults, documentation and offline
// validation. The tenant is not here: it comes from the namespace and can't be self-declared.

import type { z } from 'zod';

import { ALIAS_PATTERN } from '#core/config/sidecar-config.ts';

import { bindingLimitsSchema } from './call-limits.ts';
import { duration } from './durations.ts';
import {
  ATOMIC,
  choice,
  dnsLabel,
  dnsSubdomain,
  int,
  list,
  mapBy,
  matchLabels,
  object,
  text,
} from './field-schemas.ts';
import { celRaw, withRules } from './rule.ts';
import { CONDITION_REASON, statusFields } from './status-schema.ts';
import { toolPatterns } from './tool-fields.ts';

/** Names the ConfigMap `fairlead-<name>` and a label's value, which has 63 characters. */
export const BINDING_NAME_MAX_LENGTH = 63;
/** The sidecar's port for health and metrics, on the pod's address. */
const HEALTH_PORT = 7318;

const ALIAS = new RegExp(ALIAS_PATTERN);

const boundServer = withRules(
  object('One server that the workload may use.', {
    name: dnsSubdomain('Name of the McpServer.'),
    namespace: dnsLabel(
      "Namespace of the McpServer; the binding's own when absent. The server must allow the binding's namespace.",
    ).optional(),
    alias: text(
      'Short name: the prefix of its tools and the segment in /servers/{alias}/mcp. Default: name, which must be no longer than 24 characters then.',
      {
        max: 24,
        pattern: ALIAS_PATTERN,
        hint: 'must be at most 24 lower-case letters, digits and "-", beginning and ending with a letter or digit',
      },
    ).optional(),
    tools: object('Fewer tools than the server allows.', {
      allow: toolPatterns(
        "Tools that may be listed and called, by name or pattern. Counts together with the server's own list: a tool must be in both.",
      ),
    }).optional(),
    limits: bindingLimitsSchema.optional(),
  }),
  [
    {
      cel: `has(self.alias) || self.name.matches(${celRaw(ALIAS_PATTERN)})`,
      message:
        'must be given when name is no alias itself: at most 24 lower-case letters, digits and "-"',
      path: '.alias',
      reason: 'FieldValueRequired',
      check: ({ name, alias }) => alias !== undefined || ALIAS.test(name),
    },
  ],
);

/** The name that tools are prefixed with. */
export function effectiveAlias(server: {
  readonly name: string;
  readonly alias?: string | undefined;
}): string {
  return server.alias ?? server.name;
}

const celAlias = (server: string): string =>
  `(has(${server}.alias) ? ${server}.alias : ${server}.name)`;

const servers = withRules(
  list('Servers that the workload may use. Must not be empty.', boundServer, {
    min: 1,
    max: 64,
    kind: ATOMIC,
  }),
  [
    {
      cel: `self.all(a, self.exists_one(b, ${celAlias('a')} == ${celAlias('b')}))`,
      message:
        'must have a different alias for each server (the alias is the name where none is given)',
      reason: 'FieldValueDuplicate',
      check: (items) => new Set(items.map(effectiveAlias)).size === items.length,
    },
  ],
);

const sidecar = object('How the sidecar runs.', {
  port: withRules(int('Port on 127.0.0.1 that agents call.', 1, 65_535), [
    {
      cel: `self != ${HEALTH_PORT}`,
      message: `must not be ${HEALTH_PORT}: the sidecar's health and metrics are there`,
      check: (port) => port !== HEALTH_PORT,
    },
  ]).default(7317),
  drainTimeout: duration(
    'How long calls in flight may go on when their server is removed or changed.',
    { min: '0s', max: '1h' },
  ).default('30s'),
  logLevel: choice('What the sidecar logs.', ['debug', 'info', 'warn', 'error']).default('info'),
});

export const mcpBindingSpecSchema = object('Who may use which servers.', {
  workload: object('The pods that this binding is for, in its own namespace.', {
    matchLabels: matchLabels('Labels that a pod must all have. Must not be empty.'),
  }),
  user: object('Whose account the workload uses at the remote servers.', {
    type: choice('Static: one account for everyone who reaches the pod.', ['Static']),
    static: object('The one account.', {
      id: text(
        'Id of the account. Separates connections, credentials and caches; appears in no log.',
        {
          max: 256,
          pattern: '^[!-~]([ -~]*[!-~])?$',
          hint: 'must be printable ASCII characters, without blanks at either end',
        },
      ),
    }),
  }),
  servers,
  sidecar: sidecar.prefault({}),
});

const serverStatus = object('What became of one server of the binding.', {
  alias: text('The alias in effect.', { max: 253 }),
  namespace: text('Namespace of the McpServer.', { max: 63 }),
  name: text('Name of the McpServer.', { max: 253 }),
  state: choice('Included: it is in the rendered config. Excluded: it is not; reason says why.', [
    'Included',
    'Excluded',
  ]),
  reason: text('Why, in one word.', CONDITION_REASON),
  message: text('Why, in a sentence.', { min: 0, max: 1024 }).optional(),
});

export const mcpBindingStatusSchema = object(
  'What the operator rendered and the sidecars reported.',
  {
    ...statusFields,
    configRevision: text('Revision of the config that the sidecars should run.', {
      max: 64,
      pattern: '^[0-9a-f]{64}$',
    }).optional(),
    configMapName: text('ConfigMap that holds the config.', { max: 253 }).optional(),
    servers: list('The servers of the binding.', serverStatus, {
      max: 64,
      kind: mapBy('alias'),
    }).optional(),
  },
);

export type McpBindingSpec = z.output<typeof mcpBindingSpecSchema>;
export type BoundServer = McpBindingSpec['servers'][number];
export type McpBindingStatus = z.output<typeof mcpBindingStatusSchema>;
