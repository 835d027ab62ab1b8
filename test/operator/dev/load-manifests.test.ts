import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { loadManifests, parseManifests } from '#operator/dev/load-manifests.ts';

const SERVER = `apiVersion: fairlead.dev/v1alpha1
kind: McpServer
metadata:
  name: issues
  labels:
    app.kubernetes.io/name: issues
spec:
  endpoint: https://mcp.example.com/mcp
  egress:
    allowedHosts: [mcp.example.com, "*.example.org"]
`;

test('every field is found again at its line and column, also below keys with dots', () => {
  const [object] = parseManifests('s.yaml', SERVER).objects;
  const rows: [string, number, number][] = [
    ['spec.endpoint', 8, 3],
    ['spec.egress.allowedHosts[1]', 10, 37],
    ['metadata.labels.app.kubernetes.io/name', 6, 5],
    ['spec.egress.allowedPorts', 9, 3],
    ['spec.nothing.at.all', 7, 1],
    ['', 1, 1],
  ];
  for (const [path, line, column] of rows)
    assert.deepEqual(object?.positionOf(path), { file: 's.yaml', line, column }, path);
});

test('several documents, lists and JSON are read; empty documents are nothing', () => {
  const { objects, issues } = parseManifests(
    'm.yaml',
    `---\n${SERVER}---\n# only a comment\n---\n{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"c"}}]}\n`,
  );
  assert.deepEqual(issues, []);
  assert.deepEqual(
    objects.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`),
    ['McpServer default/issues', 'Namespace default/a', 'ConfigMap c/b'],
  );
  assert.equal(objects[2]?.positionOf('metadata.namespace').line, 15);
});

test('values read as kubectl reads them: YAML 1.1, but dates and clock times stay text', () => {
  const { objects } = parseManifests(
    'v.yaml',
    'apiVersion: v1\nkind: X\nspec: {a: 2026-07-28, b: yes, c: 12:30:45, d: 010, e: "yes"}\n',
  );
  assert.deepEqual(objects[0]?.input['spec'], {
    a: '2026-07-28',
    b: true,
    c: '12:30:45',
    d: 8,
    e: 'yes',
  });
});

test('broken YAML, documents that are no objects and duplicate keys are named with their line', () => {
  const rows: [string, number, RegExp][] = [
    ['a: [1,\n', 2, /not valid YAML/],
    ['a: 1\na: 2\n', 2, /not valid YAML.*unique/],
    ['- a\n- b\n', 1, /must be a Kubernetes object/],
    ['kind: McpServer\n', 1, /must have apiVersion and kind/],
    ['a: &x [*x, *x]\n', 1, /./],
  ];
  for (const [text, line, message] of rows) {
    const [issue] = parseManifests('x.yaml', text).issues;
    assert.equal(issue?.line, line, text);
    assert.match(issue?.message ?? '', message);
  }
});

test('directories are read recursively, without hidden folders, node_modules and fairlead-dev.yaml; duplicates name both places', async () => {
  const root = await mkdtemp(join(tmpdir(), 'fairlead-load-'));
  await mkdir(join(root, 'team'));
  await mkdir(join(root, '.git'));
  await mkdir(join(root, 'node_modules'));
  for (const file of [
    'a.yaml',
    'team/b.yml',
    '.git/c.yaml',
    'node_modules/d.yaml',
    'fairlead-dev.yaml',
    'notes.txt',
  ])
    await writeFile(join(root, file), SERVER);
  const loaded = await loadManifests([root]);
  assert.deepEqual(loaded.files, [join(root, 'a.yaml'), join(root, 'team/b.yml')]);
  assert.equal(loaded.objects.length, 2);
  assert.equal(loaded.issues.length, 1);
  assert.match(loaded.issues[0]?.message ?? '', /is defined already in .*a\.yaml:4/);
  await rm(root, { recursive: true });
});

test('links that lead back, or nowhere, end there', async () => {
  const root = await mkdtemp(join(tmpdir(), 'fairlead-load-'));
  await mkdir(join(root, 'team'));
  await writeFile(join(root, 'team/a.yaml'), SERVER);
  await symlink('..', join(root, 'team/up'));
  await symlink('.', join(root, 'self'));
  await symlink('gone', join(root, 'dangling'));
  const loaded = await loadManifests([root]);
  assert.deepEqual(loaded.files, [join(root, 'team/a.yaml')]);
  assert.deepEqual(loaded.issues, []);
  await rm(root, { recursive: true });
});

test('aliases that are unknown, or that would fill the memory, are a problem of that file', () => {
  const nine = (name: string, of: string): string =>
    `${name}: &${name} [${Array(9).fill(`*${of}`).join(', ')}]\n`;
  const bomb = `a: &a [1, 1, 1]\n${nine('b', 'a')}${nine('c', 'b')}${nine('d', 'c')}${nine('e', 'd')}`;
  for (const yaml of [bomb, 'a: *nowhere\n']) {
    const { objects, issues } = parseManifests('x.yaml', yaml);
    assert.deepEqual(objects, []);
    assert.equal(issues.length, 1);
    assert.match(issues[0]?.message ?? '', /is not valid YAML: .*alias/i);
  }
});
