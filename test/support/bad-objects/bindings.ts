// Bad McpBindings.

import type { Edits } from '#test/support/edit-value.ts';
import { NONE } from './bad-object.ts';
import type { BadObject } from './bad-object.ts';

type BindingRow = readonly [
  title: string,
  change: Edits,
  path: string,
  sidecar: BadObject['sidecar'],
  isUnknownField?: true,
];

const long = 'a-name-of-more-than-24-characters';
const NO_ID = { config: { 'identity.user.id': '' }, path: 'identity.user.id' };

const ROWS: readonly BindingRow[] = [
  ['a binding without workload', { 'spec.workload': undefined }, 'spec.workload', NONE.workload],
  [
    'a workload without labels',
    { 'spec.workload.matchLabels': {} },
    'spec.workload.matchLabels',
    NONE.workload,
  ],
  [
    'a workload whose labels are null',
    { 'spec.workload.matchLabels': null },
    'spec.workload.matchLabels',
    NONE.workload,
  ],
  [
    'a label key with a blank',
    { 'spec.workload.matchLabels': { 'a b': 'c' } },
    'spec.workload.matchLabels',
    NONE.workload,
  ],
  [
    'a label value with a blank',
    { 'spec.workload.matchLabels': { app: 'a b' } },
    'spec.workload.matchLabels.app',
    NONE.workload,
  ],
  [
    'a label value that is a number',
    { 'spec.workload.matchLabels': { app: 5 } },
    'spec.workload.matchLabels.app',
    NONE.workload,
  ],
  [
    'a binding without user',
    { 'spec.user': undefined },
    'spec.user',
    { config: { 'identity.user': undefined }, path: 'identity.user' },
  ],
  [
    'an unknown type of user',
    { 'spec.user.type': 'Anyone' },
    'spec.user.type',
    { config: { 'identity.user.type': 'Anyone' }, path: 'identity.user.type' },
  ],
  [
    'a static user without id',
    { 'spec.user.static': {} },
    'spec.user.static.id',
    { config: { 'identity.user.id': undefined }, path: 'identity.user.id' },
  ],
  ['an empty user id', { 'spec.user.static.id': '' }, 'spec.user.static.id', NO_ID],
  [
    'a user id of more than 256 characters',
    { 'spec.user.static.id': 'a'.repeat(257) },
    'spec.user.static.id',
    { config: { 'identity.user.id': 'a'.repeat(257) }, path: 'identity.user.id' },
  ],
  [
    'a user id with a line break',
    { 'spec.user.static.id': 'a\nb' },
    'spec.user.static.id',
    { config: { 'identity.user.id': 'a\nb' }, path: 'identity.user.id' },
  ],
  ['a tenant of its own choice', { 'spec.tenant': 'other' }, 'spec.tenant', NONE.unknown, true],
  [
    'a binding without servers',
    { 'spec.servers': undefined },
    'spec.servers',
    { config: { servers: undefined }, path: 'servers' },
  ],
  [
    'an empty list of servers',
    { 'spec.servers': [] },
    'spec.servers',
    { none: 'a config without servers is what remains when none can be used' },
  ],
  [
    'a server without name',
    { 'spec.servers[0]': { alias: 'a' } },
    'spec.servers[0].name',
    { config: { 'servers[0].name': undefined }, path: 'servers[0].name' },
  ],
  [
    'a server name with a slash',
    { 'spec.servers[0].name': 'other/issues' },
    'spec.servers[0].name',
    NONE.reference,
  ],
  [
    'a server namespace with a dot',
    { 'spec.servers[0].namespace': 'a.b' },
    'spec.servers[0].namespace',
    NONE.reference,
  ],
  [
    'a long server name without alias',
    { 'spec.servers[0].name': long },
    'spec.servers[0].alias',
    { config: { 'servers[0].alias': long }, path: 'servers[0].alias' },
  ],
  [
    'a server name with a dot without alias',
    { 'spec.servers[0].name': 'a.b' },
    'spec.servers[0].alias',
    { config: { 'servers[0].alias': 'a.b' }, path: 'servers[0].alias' },
  ],
  [
    'a long alias',
    { 'spec.servers[0].alias': long },
    'spec.servers[0].alias',
    { config: { 'servers[0].alias': long }, path: 'servers[0].alias' },
  ],
  [
    'an alias with an underscore',
    { 'spec.servers[0].alias': 'a__b' },
    'spec.servers[0].alias',
    { config: { 'servers[0].alias': 'a__b' }, path: 'servers[0].alias' },
  ],
  [
    'an alias in upper case',
    { 'spec.servers[0].alias': 'Issues' },
    'spec.servers[0].alias',
    { config: { 'servers[0].alias': 'Issues' }, path: 'servers[0].alias' },
  ],
  [
    'one alias for two servers',
    { 'spec.servers[1].alias': 'issues' },
    'spec.servers',
    { config: { 'servers[1].alias': 'issues' }, path: 'servers[1].alias' },
  ],
  [
    'one name twice without alias',
    { 'spec.servers[1]': { name: 'issues', namespace: 'platform' } },
    'spec.servers',
    { config: { 'servers[1].alias': 'issues' }, path: 'servers[1].alias' },
  ],
  [
    'an empty list of narrower tools',
    { 'spec.servers[0].tools': { allow: [] } },
    'spec.servers[0].tools.allow',
    { config: { 'servers[0].tools.allow[1]': [] }, path: 'servers[0].tools.allow[1]' },
  ],
  [
    'narrower tools without a list',
    { 'spec.servers[0].tools': {} },
    'spec.servers[0].tools.allow',
    NONE.reference,
  ],
  [
    'another endpoint for a server',
    { 'spec.servers[0].endpoint': 'https://evil.example' },
    'spec.servers[0].endpoint',
    NONE.unknown,
    true,
  ],
  [
    'port 0 for agents',
    { 'spec.sidecar': { port: 0 } },
    'spec.sidecar.port',
    { config: { 'listeners.agentPort': 0 }, path: 'listeners.agentPort' },
  ],
  [
    'port 65536 for agents',
    { 'spec.sidecar': { port: 65_536 } },
    'spec.sidecar.port',
    { config: { 'listeners.agentPort': 65_536 }, path: 'listeners.agentPort' },
  ],
  [
    'the health port for agents',
    { 'spec.sidecar': { port: 7318 } },
    'spec.sidecar.port',
    { none: 'the health port is an option of the sidecar, not of its config' },
  ],
  [
    'a drain time of more than an hour',
    { 'spec.sidecar': { drainTimeout: '61m' } },
    'spec.sidecar.drainTimeout',
    { config: { 'drain.timeoutMs': 3_660_000 }, path: 'drain.timeoutMs' },
  ],
  [
    'an unknown log level',
    { 'spec.sidecar': { logLevel: 'trace' } },
    'spec.sidecar.logLevel',
    { config: { 'telemetry.logLevel': 'trace' }, path: 'telemetry.logLevel' },
  ],
  [
    'a binding name of more than 63 characters',
    { 'metadata.name': 'a'.repeat(64) },
    'metadata.name',
    NONE.metadata,
  ],
];

export const BAD_BINDINGS: readonly BadObject[] = ROWS.map(
  ([title, change, path, sidecar, isUnknownField]) => ({
    title,
    on: 'binding',
    change,
    path,
    sidecar,
    proves: title.includes('tenant') || title.includes('endpoint') ? 'R8' : 'R7',
    ...(isUnknownField === undefined ? {} : { isUnknownField }),
  }),
);
