// An operator of one namespace with the rights of examples/operator/one-namespace.yaml and not one
// more, on a real API server: what it may not do it never tries.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';

import {
  bindingObject,
  namespaceObject,
  OPERATOR_AGENT,
  OperatorScene,
  serverObject,
} from '#test/support/operator-scene.ts';

const ACCOUNT = { namespace: 'fairlead-system', name: 'fairlead-operator' } as const;
const USER = `system:serviceaccount:${ACCOUNT.namespace}:${ACCOUNT.name}`;

let scene: OperatorScene;
let kubeconfigPath: string;

before(async () => {
  scene = await OperatorScene.open();
  kubeconfigPath = await scene.plane.kubeconfigFor({ user: USER });
});

after(async () => {
  await scene[Symbol.asyncDispose]();
});

function example(file: string): Promise<string> {
  return readFile(new URL(`../../../examples/operator/${file}`, import.meta.url), 'utf8');
}

/** Requests that the API server refused for lack of rights. */
async function refused(): Promise<string[]> {
  const entries = await scene.plane.audit.entriesSince(0);
  return entries
    .filter(
      ({ code, userAgent }) => (code === 403 || code === 401) && OPERATOR_AGENT.test(userAgent),
    )
    .map(({ verb, uri }) => `${verb} ${uri}`);
}

async function caBundle(): Promise<void> {
  await scene.put({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'ca', namespace: 'team' },
    data: { 'ca.crt': scene.plane.caPem },
  });
}

test('an operator of one namespace needs rights in that namespace only, and acts in no other', async () => {
  const manifests = await example('operator.yaml');
  const withoutClusterRole = manifests
    .split('\n---\n')
    .filter((document) => !/^kind: ClusterRole/m.test(document));
  assert.ok(withoutClusterRole.length >= 6);
  await scene.put(
    namespaceObject('team', { 'fairlead.dev/tenant': 'acme' }),
    namespaceObject('other'),
  );
  await scene.plane.apply(withoutClusterRole.join('\n---\n'));
  await scene.plane.apply(await example('one-namespace.yaml'));
  await caBundle();
  await scene.put(
    serverObject('team', 'github', {
      egress: { allowedHosts: ['github.example.com'], caBundleRef: { name: 'ca' } },
    }),
    serverObject('other', 'elsewhere'),
    bindingObject('team', 'agent', [{ name: 'github' }]),
    bindingObject('team', 'far', [{ name: 'elsewhere', namespace: 'other' }]),
    bindingObject('other', 'agent', [{ name: 'elsewhere' }]),
  );
  await using operator = scene.startOperator({
    kubeconfigPath,
    electsLeader: true,
    flags: ['--watch-namespaces', 'team', '--lease-namespace', ACCOUNT.namespace],
  });
  await operator.untilLeading();
  const agent = { namespace: 'team', binding: 'agent' };
  const text = await scene.untilConfig(agent, (config) => config.includes('"tenant": "acme"'));
  assert.match(text, /BEGIN CERTIFICATE/);
  const far = { kind: 'McpBinding', namespace: 'team', name: 'far' };
  await scene.untilCondition(far, 'ResolvedRefs', 'ServerNotFound');
  await scene.untilQuiet();
  const writes = await scene.operatorWrites(0);
  assert.deepEqual(new Set(writes.map(({ namespace }) => namespace)), new Set(['team']));
  assert.equal(await scene.configText('other', 'agent'), undefined);
  assert.deepEqual(await refused(), []);
});

test('a label on the one watched namespace, a change and a delete are followed', async () => {
  await using operator = scene.startOperator({
    kubeconfigPath,
    flags: ['--watch-namespaces', 'team'],
  });
  await operator.untilLeading();
  await scene.put(namespaceObject('team', { 'fairlead.dev/tenant': 'globex' }));
  const agent = { namespace: 'team', binding: 'agent' };
  await scene.untilConfig(agent, (config) => config.includes('"tenant": "globex"'));
  await scene.run(['delete', 'mcpserver', 'github', '-n', 'team']);
  await scene.untilConfig(agent, (config) => config.includes('"servers": []'));
  assert.deepEqual(await refused(), []);
});
