// Bad McpServers: missing, unknown and empty fields, wrong types, values out of range.

import { NONE, rowsOn, twin } from './bad-object.ts';
import type { BadObject } from './bad-object.ts';

function unknownRow(title: string, field: string): BadObject {
  const change = { [field]: 1 };
  return {
    title,
    on: 'server',
    change,
    path: field,
    sidecar: NONE.unknown,
    proves: 'R7',
    isUnknownField: true,
  };
}

const missing = rowsOn('server', 'R1', [
  [
    'a server without spec',
    { spec: undefined },
    'spec',
    { config: { servers: undefined }, path: 'servers' },
  ],
  [
    'a server without endpoint',
    { 'spec.endpoint': undefined },
    'spec.endpoint',
    twin('endpoint', undefined),
  ],
  ['a null endpoint', { 'spec.endpoint': null }, 'spec.endpoint', twin('endpoint', null)],
  [
    'a server without egress',
    { 'spec.egress': undefined },
    'spec.egress',
    twin('egress', undefined),
  ],
  [
    'egress without allowed hosts',
    { 'spec.egress.allowedHosts': undefined },
    'spec.egress.allowedHosts',
    twin('egress.allowedHosts', undefined),
  ],
  ['a server without tools', { 'spec.tools': undefined }, 'spec.tools', twin('tools', undefined)],
  [
    'tools without an allow list',
    { 'spec.tools.allow': undefined },
    'spec.tools.allow',
    twin('tools.allow', undefined),
  ],
]);

const unknown: readonly BadObject[] = [
  unknownRow('an unknown field of spec', 'spec.endpiont'),
  unknownRow('an unknown nested field', 'spec.egress.allowedHost'),
  unknownRow('an unknown field of a list item', 'spec.egress.inClusterExceptions[0].port'),
  unknownRow('an unknown field beside spec', 'specs'),
  unknownRow('an unknown field of metadata', 'metadata.label'),
  unknownRow('a field that only "fairlead dev" has', 'spec.stdio'),
];

const wrongTypes = rowsOn('server', 'R7', [
  [
    'a boolean as text',
    { 'spec.suspend': 'yes' },
    'spec.suspend',
    { none: 'a suspended server is not rendered' },
  ],
  [
    'a list as text',
    { 'spec.tools.allow': 'get_*' },
    'spec.tools.allow',
    twin('tools.allow', 'get_*'),
  ],
  ['an object as list', { 'spec.limits': [] }, 'spec.limits', twin('limits', [])],
  ['a number as text', { 'spec.priority': '5' }, 'spec.priority', twin('priority', '5')],
  [
    'a fraction',
    { 'spec.limits.maxConcurrency': 1.5 },
    'spec.limits.maxConcurrency',
    twin('limits.maxConcurrency', 1.5),
  ],
  [
    'a null in a list',
    { 'spec.tools.allow': ['get_*', null] },
    'spec.tools.allow[1]',
    twin('tools.allow[0]', ['get_*', null], 'tools.allow[0][1]'),
  ],
]);

const values = rowsOn('server', 'R1', [
  [
    'an unknown transport',
    { 'spec.transport': 'Carrier' },
    'spec.transport',
    twin('transport', 'Carrier'),
  ],
  [
    'an unknown era',
    { 'spec.protocol': { era: 'Future' } },
    'spec.protocol.era',
    twin('protocol.era', 'Future'),
  ],
  [
    'no protocol versions',
    { 'spec.protocol': { versions: [] } },
    'spec.protocol.versions',
    twin('protocol.versions', []),
  ],
  [
    'an unknown protocol version',
    { 'spec.protocol': { versions: ['2024-11-05'] } },
    'spec.protocol.versions[0]',
    twin('protocol.versions', ['2024-11-05'], 'protocol.versions[0]'),
  ],
  [
    'a protocol version that is there twice',
    { 'spec.protocol': { versions: ['2025-11-25', '2025-11-25'] } },
    'spec.protocol.versions[1]',
    NONE.repeated,
  ],
  ['a priority out of range', { 'spec.priority': 1001 }, 'spec.priority', twin('priority', 1001)],
  ['no allowed tools', { 'spec.tools.allow': [] }, 'spec.tools.allow', twin('tools.allow[0]', [])],
  [
    'an empty tool name',
    { 'spec.tools.allow': [''] },
    'spec.tools.allow[0]',
    twin('tools.allow[0]', [''], 'tools.allow[0][0]'),
  ],
  [
    'a tool pattern with a regular expression in it',
    { 'spec.tools.allow': ['get_(.+)'] },
    'spec.tools.allow[0]',
    twin('tools.allow[0]', ['get_(.+)'], 'tools.allow[0][0]'),
  ],
  [
    'a tool pattern that is there twice',
    { 'spec.tools.allow': ['a', 'a'] },
    'spec.tools.allow[1]',
    NONE.repeated,
  ],
  [
    'an override without effect',
    { 'spec.tools.overrides': [{ name: 'a' }] },
    'spec.tools.overrides[0].effect',
    twin('tools.overrides', [{ name: 'a' }], 'tools.overrides[0].effect'),
  ],
  [
    'an override with an unknown effect',
    { 'spec.tools.overrides': [{ name: 'a', effect: 'Maybe' }] },
    'spec.tools.overrides[0].effect',
    twin('tools.overrides', [{ name: 'a', effect: 'Maybe' }], 'tools.overrides[0].effect'),
  ],
  [
    'an override of a pattern',
    { 'spec.tools.overrides': [{ name: 'a*', effect: 'Write' }] },
    'spec.tools.overrides[0].name',
    { none: 'an override of a pattern matches no tool' },
  ],
  [
    'two overrides of one tool',
    {
      'spec.tools.overrides': [
        { name: 'a', effect: 'Write' },
        { name: 'a', effect: 'ReadOnly' },
      ],
    },
    'spec.tools.overrides[1]',
    { none: 'the API server keeps overrides unique by name' },
  ],
  [
    'a selector without labels',
    { 'spec.allowedNamespaces': { from: 'Selector', selector: { matchLabels: {} } } },
    'spec.allowedNamespaces.selector.matchLabels',
    NONE.namespaces,
  ],
  [
    'from Selector without a selector',
    { 'spec.allowedNamespaces': { from: 'Selector' } },
    'spec.allowedNamespaces.selector',
    NONE.namespaces,
  ],
  [
    'a selector that from does not ask for',
    { 'spec.allowedNamespaces': { from: 'All', selector: { matchLabels: { a: 'b' } } } },
    'spec.allowedNamespaces.selector',
    NONE.namespaces,
  ],
  [
    'an unknown way to allow namespaces',
    { 'spec.allowedNamespaces': { from: 'Some' } },
    'spec.allowedNamespaces.from',
    NONE.namespaces,
  ],
  ['a name in upper case', { 'metadata.name': 'Issues' }, 'metadata.name', NONE.metadata],
]);

export const BAD_SERVERS: readonly BadObject[] = [...missing, ...unknown, ...wrongTypes, ...values];
