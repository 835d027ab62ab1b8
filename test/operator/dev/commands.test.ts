// `fairlead validate` and `fairlead render` as programs: exit codes, what is printed, what is written.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';

import { checkSidecarConfig } from '#core/config/sidecar-config.ts';

const PROGRAM = join(import.meta.dirname, '../../../bin/fairlead.ts');

const SERVER = `apiVersion: fairlead.dev/v1alpha1
kind: McpServer
metadata: { name: issues, namespace: tools }
spec:
  endpoint: https://mcp.example.com/mcp
  egress:
    allowedHosts: [mcp.example.com]
  tools: { allow: ["*"] }
  allowedNamespaces: { from: All }
`;
const BINDING = `apiVersion: fairlead.dev/v1alpha1
kind: McpBinding
metadata: { name: agent, namespace: team }
spec:
  workload: { matchLabels: { app: agent } }
  user: { type: Static, static: { id: robot } }
  servers:
    - { name: issues, namespace: tools }
`;
const NAMESPACE = `apiVersion: v1
kind: Namespace
metadata: { name: team, labels: { fairlead.dev/tenant: acme } }
`;

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'fairlead-commands-'));
});
after(() => rm(root, { recursive: true }));

interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function fairlead(args: readonly string[], stdin = ''): Promise<Result> {
  const child = spawn(process.execPath, [PROGRAM, ...args], { cwd: root });
  child.stdin.end(stdin);
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve) => child.once('close', resolve)),
  ]);
  return { code, stdout, stderr };
}

let made = 0;
async function files(named: Readonly<Record<string, string>>): Promise<string> {
  made += 1;
  const name = `dir-${String(made)}`;
  await mkdir(join(root, name));
  for (const [file, yaml] of Object.entries(named)) await writeFile(join(root, name, file), yaml);
  return name;
}

test('good files: one line that counts them, exit code 0, nothing on stderr', async () => {
  const directory = await files({ 'a.yaml': SERVER, 'b.yaml': BINDING, 'n.yaml': NAMESPACE });
  const { code, stdout, stderr } = await fairlead(['validate', directory]);
  assert.equal(stderr, '');
  assert.equal(
    stdout,
    'valid: 1 McpServer, 1 McpBinding in 3 files; 1 object of other kinds left alone\n',
  );
  assert.equal(code, 0);
});

test('bad files: every problem with file, line, column, object and field, exit code 1', async () => {
  const directory = await files({
    'a.yaml': SERVER.replace('https://', 'http://').replace('allowedHosts', 'allowdHosts'),
    'b.yaml': `${BINDING}    - { name: absent }\n`,
    'c.yaml': 'kind: [',
    'd.yaml': SERVER.replace('v1alpha1', 'v9').replace('issues', 'newer'),
  });
  const { code, stdout } = await fairlead(['validate', directory]);
  assert.equal(code, 1);
  const at = (file: string, place: string): RegExp =>
    new RegExp(`^${directory}/${file}:${place}: `, 'm');
  assert.match(stdout, at('a.yaml', '7:5'));
  assert.match(stdout, /McpServer tools\/issues: spec\.egress\.allowdHosts: is not a field/);
  assert.match(stdout, at('b.yaml', '9:9'));
  assert.match(stdout, /spec\.servers\[1\]\.name: McpServer team\/absent does not exist/);
  assert.match(stdout, at('c.yaml', '1:8'));
  assert.match(stdout, /apiVersion: must be "fairlead\.dev\/v1alpha1"/);
  assert.match(stdout, /invalid: [0-9]+ problems; 2 McpServers, 1 McpBinding in 4 files\n$/);
});

test('a wildcard over a public suffix is a problem of the field, exit code 1 (R12)', async () => {
  const directory = await files({
    'a.yaml': SERVER.replace(/allowedHosts: \[/, 'allowedHosts: ["*.co.uk", '),
  });
  const { code, stdout } = await fairlead(['validate', directory]);
  assert.equal(code, 1);
  assert.match(stdout, /spec\.egress\.allowedHosts\[0\]: must not be a wildcard over "co\.uk"/);
});

test('JSON output holds the same problems as data', async () => {
  const directory = await files({ 'a.yaml': SERVER.replace('["*"]', '[]') });
  const { code, stdout } = await fairlead(['validate', directory, '--output', 'json']);
  assert.equal(code, 1);
  const page = JSON.parse(stdout) as { valid: boolean; issues: Record<string, unknown>[] };
  assert.equal(page.valid, false);
  const [issue] = page.issues;
  assert.deepEqual(
    { ...issue, message: undefined },
    {
      file: `${directory}/a.yaml`,
      line: 8,
      column: 12,
      object: 'McpServer tools/issues',
      path: 'spec.tools.allow',
      message: undefined,
    },
  );
});

test('standard input is read like a file', async () => {
  const good = await fairlead(['validate', '-'], `${SERVER}---\n${BINDING}`);
  assert.deepEqual([good.code, good.stderr], [0, '']);
  const bad = await fairlead(['validate', '-'], SERVER.replace('https:', 'ftp:'));
  assert.equal(bad.code, 1);
  assert.match(bad.stdout, /^-:5:3: McpServer tools\/issues: spec\.endpoint: /m);
});

test('plain http on loopback is accepted with --development, and without it is not', async () => {
  const local = SERVER.replace('https://mcp.example.com/mcp', 'http://127.0.0.1:7401/mcp').replace(
    '[mcp.example.com]',
    '[127.0.0.1]\n    allowedPorts: [7401]',
  );
  const directory = await files({ 'a.yaml': local });
  assert.equal((await fairlead(['validate', directory])).code, 1);
  assert.equal((await fairlead(['validate', directory, '--development'])).code, 0);
});

test('a path that is not there, and wrong options, end with 64', async () => {
  const absent = await fairlead(['validate', 'absent']);
  assert.equal(absent.code, 64);
  assert.match(absent.stderr, /absent does not exist/);
  assert.equal((await fairlead(['validate'])).code, 64);
  assert.equal((await fairlead(['validate', '.', '--output', 'xml'])).code, 64);
  assert.equal((await fairlead(['render', '.'])).code, 64);
});

test('render writes one directory per binding, with bytes that the sidecar accepts, the same each time', async () => {
  const other = BINDING.replace('agent', 'worker').replace('namespace: team', 'namespace: other');
  const directory = await files({ 'all.yaml': [SERVER, BINDING, other, NAMESPACE].join('---\n') });
  const { code, stdout } = await fairlead(['render', directory, '--out', 'out']);
  assert.equal(code, 0);
  assert.deepEqual((await readdir(join(root, 'out'))).toSorted(), ['other', 'team']);
  const bytes = await readFile(join(root, 'out/team/agent/config.json'), 'utf8');
  const verdict = checkSidecarConfig(JSON.parse(bytes), { development: false });
  assert.ok(verdict.kind === 'ok');
  assert.equal(verdict.config.identity.tenant, 'acme');
  assert.ok(stdout.includes(verdict.config.revision.slice(0, 12)));
  await fairlead(['render', directory, '--out', 'again']);
  assert.equal(await readFile(join(root, 'again/team/agent/config.json'), 'utf8'), bytes);
});

test('render of bad files says why on stderr and writes nothing', async () => {
  const directory = await files({ 'a.yaml': SERVER, 'b.yaml': BINDING.replace('robot', '" "') });
  const { code, stdout, stderr } = await fairlead(['render', directory, '--out', 'never']);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /b\.yaml:6:.*spec\.user\.static\.id/);
  await assert.rejects(readdir(join(root, 'never')), /ENOENT/);
});
