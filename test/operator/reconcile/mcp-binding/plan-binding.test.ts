import assert from 'node:assert/strict';
import { test } from 'node:test';

import { type McpBinding, validateObject } from '#crds/validate-object.ts';
import {
  type BindingPlan,
  type BindingWorld,
  planBinding,
} from '#operator/reconcile/mcp-binding/plan-binding.ts';
import { judgeServer, type JudgedServer } from '#operator/reconcile/mcp-server/judge-server.ts';
import { editValue, type Edits } from '#test/support/edit-value.ts';
import { GOOD_BINDING, GOOD_OAUTH_SERVER, GOOD_SERVER } from '#test/support/good-objects.ts';

const OPTIONS = { development: false, unknownFields: 'refuse' } as const;

function judged(edits: Edits = {}, base: unknown = GOOD_SERVER): JudgedServer {
  const open = editValue(base, { 'spec.allowedNamespaces': { from: 'All' } });
  return judgeServer(validateObject(editValue(open, edits), OPTIONS), undefined);
}

function binding(servers: readonly Readonly<Record<string, unknown>>[]): McpBinding {
  const verdict = validateObject(editValue(GOOD_BINDING, { 'spec.servers': servers }), OPTIONS);
  assert.ok(verdict.kind === 'ok' && verdict.object.kind === 'McpBinding', JSON.stringify(verdict));
  return verdict.object;
}

interface World {
  readonly servers: Readonly<Record<string, JudgedServer>>;
  readonly entries?: readonly Readonly<Record<string, unknown>>[];
  readonly labels?: BindingWorld['namespaceLabels'];
}

function plan({
  servers,
  entries = [{ name: 'issues', namespace: 'tools' }],
  labels = {},
}: World): BindingPlan {
  return planBinding({
    binding: binding(entries),
    namespace: 'team',
    namespaceLabels: labels,
    findServer: (namespace, name) => servers[`${namespace}/${name}`],
  });
}

interface Facts {
  readonly aliases: readonly string[];
  readonly tenant: string;
}

function factsOf({ config }: BindingPlan): Facts {
  assert.ok(config.kind === 'ok');
  const { servers, identity } = JSON.parse(config.text) as {
    servers: { alias: string }[];
    identity: { tenant: string };
  };
  return { aliases: servers.map(({ alias }) => alias), tenant: identity.tenant };
}

const SELECTOR = {
  'spec.allowedNamespaces': { from: 'Selector', selector: { matchLabels: { stage: 'prod' } } },
};

interface Row {
  readonly what: string;
  readonly server: JudgedServer | undefined;
  readonly labels?: Readonly<Record<string, string>>;
  readonly reason: string;
  readonly resolved: 'True' | 'False';
}

const ROWS: readonly Row[] = [
  { what: 'open to all', server: judged(), reason: 'Included', resolved: 'True' },
  { what: 'absent', server: undefined, reason: 'ServerNotFound', resolved: 'False' },
  {
    what: 'for its own namespace only',
    server: judged({ 'spec.allowedNamespaces': { from: 'Same' } }),
    reason: 'RefNotPermitted',
    resolved: 'False',
  },
  {
    what: 'without a word about namespaces',
    server: judged({ 'spec.allowedNamespaces': undefined }),
    reason: 'RefNotPermitted',
    resolved: 'False',
  },
  {
    what: 'for labels that the namespace has',
    server: judged(SELECTOR),
    labels: { stage: 'prod' },
    reason: 'Included',
    resolved: 'True',
  },
  {
    what: 'for labels that the namespace has with another value',
    server: judged(SELECTOR),
    labels: { stage: 'test' },
    reason: 'RefNotPermitted',
    resolved: 'False',
  },
  {
    what: 'for labels that the namespace lacks',
    server: judged(SELECTOR),
    reason: 'RefNotPermitted',
    resolved: 'False',
  },
  {
    what: 'not supported',
    server: judged({ 'metadata.name': 'issues' }, GOOD_OAUTH_SERVER),
    reason: 'ServerNotAccepted',
    resolved: 'False',
  },
  {
    what: 'not valid',
    server: judged({ 'spec.priority': 'high' }),
    reason: 'ServerNotAccepted',
    resolved: 'False',
  },
  {
    what: 'without its CA bundle',
    server: judged({ 'spec.egress.caBundleRef': { name: 'ca' } }),
    reason: 'ServerNotAccepted',
    resolved: 'False',
  },
  {
    what: 'not supported and not for this namespace',
    server: judged({ 'spec.allowedNamespaces': { from: 'Same' } }, GOOD_OAUTH_SERVER),
    reason: 'RefNotPermitted',
    resolved: 'False',
  },
  {
    what: 'suspended',
    server: judged({ 'spec.suspend': true }),
    reason: 'Suspended',
    resolved: 'True',
  },
];
for (const { what, server, labels = {}, reason, resolved } of ROWS) {
  test(`a server that is ${what}: ${reason}, ResolvedRefs ${resolved}, and the others stay (R106)`, () => {
    const entries = [
      { name: 'issues', namespace: 'tools' },
      { name: 'other', namespace: 'tools' },
    ];
    const servers = {
      'tools/other': judged(),
      ...(server === undefined ? {} : { 'tools/issues': server }),
    };
    const result = plan({ servers, entries, labels });
    assert.equal(result.servers[0]?.reason, reason);
    assert.equal(result.resolvedRefs.status, resolved);
    if (resolved === 'False') assert.equal(result.resolvedRefs.reason, reason);
    const expected = reason === 'Included' ? ['issues', 'other'] : ['other'];
    assert.deepEqual(factsOf(result).aliases, expected);
  });
}

test('a binding whose every server is missing gets a config that gives access to none', () => {
  assert.deepEqual(factsOf(plan({ servers: {} })).aliases, []);
});

test("the tenant is the namespace's label, else its name, and nothing in the binding", () => {
  const servers = { 'tools/issues': judged() };
  assert.equal(factsOf(plan({ servers })).tenant, 'team');
  assert.equal(
    factsOf(plan({ servers, labels: { 'fairlead.dev/tenant': 'acme' } })).tenant,
    'acme',
  );
});

test("a server's namespace is the binding's own when none is named", () => {
  const result = plan({ servers: { 'team/issues': judged() }, entries: [{ name: 'issues' }] });
  assert.deepEqual(factsOf(result).aliases, ['issues']);
});

test("plain names that the server's list does not allow are told, patterns are not judged", () => {
  const entries = [
    {
      name: 'issues',
      namespace: 'tools',
      tools: { allow: ['get_user', 'drop', 'create_issue', '*'] },
    },
  ];
  const { strays } = plan({ servers: { 'tools/issues': judged() }, entries });
  assert.deepEqual(strays, [{ alias: 'issues', index: 0, tool: 'drop' }]);
});

test('what is rendered for one namespace never depends on the cluster: no uid, no generation, no time', () => {
  const live = {
    'metadata.uid': '00000000-0000-0000-0000-000000000001',
    'metadata.generation': 7,
    'metadata.resourceVersion': '12345',
    'metadata.creationTimestamp': '2026-01-01T00:00:00Z',
  };
  const one = plan({ servers: { 'tools/issues': judged() } });
  const other = plan({ servers: { 'tools/issues': judged(live) } });
  assert.deepEqual(one.config, other.config);
});
