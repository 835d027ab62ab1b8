// The operator with exactly the rights of the example, as its service account: enough for all it does,
// and nothing beyond.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';

import { parseAllDocuments } from 'yaml';

import type { KubeObject } from '#operator/kube/kube-object.ts';
import {
  bindingObject,
  eventually,
  namespaceObject,
  OperatorScene,
  serverObject,
} from '#test/support/operator-scene.ts';

const EXAMPLE = new URL('../../../examples/operator/operator.yaml', import.meta.url);
const ACCOUNT = 'system:serviceaccount:fairlead-system:fairlead-operator';

let scene: OperatorScene;
let yaml: string;

before(async () => {
  scene = await OperatorScene.open();
  yaml = await readFile(EXAMPLE, 'utf8');
  const { code, stderr } = await scene.plane.kubectl(['apply', '-f', '-'], yaml);
  assert.equal(code, 0, stderr);
});

after(async () => {
  await scene[Symbol.asyncDispose]();
});

interface Role extends KubeObject {
  readonly rules: readonly { readonly resources: string[]; readonly verbs: string[] }[];
}

test('The example is accepted by the API server as it stands', async () => {
  const strict = ['apply', '--dry-run=server', '--validate=strict', '-f', '-'];
  const { code, stdout, stderr } = await scene.plane.kubectl(strict, yaml);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /deployment\.apps\/fairlead-operator/);
});

test('The example gives no right to Secrets, to pods, to delete, nor to everything', () => {
  const documents = parseAllDocuments(yaml).map((document) => document.toJS() as KubeObject);
  const roles = documents.filter(({ kind }) => kind.endsWith('Role')) as Role[];
  assert.equal(roles.length, 2);
  const rules = roles.flatMap(({ rules: of }) => of);
  const resources = rules.flatMap((rule) => rule.resources);
  const verbs = rules.flatMap((rule) => rule.verbs);
  assert.deepEqual(
    resources.filter((resource) => /secrets|pods|\*/.test(resource)),
    [],
  );
  assert.deepEqual(
    verbs.filter((verb) => /delete|\*|escalate|bind|impersonate/.test(verb)),
    [],
  );
});

test('With exactly these rights the operator leads, reconciles, puts back and tells, and is refused nothing', async () => {
  await scene.put(
    namespaceObject('tools'),
    namespaceObject('team'),
    serverObject('tools', 'one'),
    bindingObject('team', 'agent', [
      { name: 'one', namespace: 'tools' },
      { name: 'late', namespace: 'tools' },
    ]),
  );
  const mark = await scene.plane.audit.mark();
  const kubeconfigPath = await scene.plane.kubeconfigFor({ user: ACCOUNT });
  const flags = ['--lease-namespace', 'fairlead-system'];
  await using operator = scene.startOperator({ kubeconfigPath, electsLeader: true, flags });
  await operator.untilLeading();
  const binding = { kind: 'McpBinding', namespace: 'team', name: 'agent' } as const;
  await scene.untilCondition(binding, 'ResolvedRefs', 'ServerNotFound');
  await scene.put(serverObject('tools', 'late'));
  await scene.untilCondition(binding, 'Ready', 'True');
  await scene.patch('configmap fairlead-agent', 'team', { data: { 'config.json': null, x: 'y' } });
  await scene.untilConfig({ namespace: 'team', binding: 'agent' }, (text) => text.includes('late'));
  await eventually('an event tells of it', async () => {
    const events = await scene.run(['get', 'events.events.k8s.io', '-n', 'team']);
    return /ServerNotFound/.test(events) || undefined;
  });
  assert.deepEqual(await operator.process.stop(), { code: 0, signal: null });
  const entries = await scene.plane.audit.entriesSince(mark);
  const own = entries.filter(({ user }) => user === ACCOUNT);
  assert.ok(own.length > 20);
  assert.deepEqual(
    own.filter(({ code }) => code === 401 || code === 403).map(({ verb, uri }) => `${verb} ${uri}`),
    [],
  );
});
