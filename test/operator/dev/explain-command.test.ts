// `fairlead explain egress` as a program: verdicts, exit codes, what is printed and what is not.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, suite, test } from 'node:test';

import type { ExplainPage } from '#operator/dev/explain-page.ts';

const PROGRAM = join(import.meta.dirname, '../../../bin/fairlead.ts');

function serverYaml(name: string, endpoint: string, egress: string): string {
  return `apiVersion: fairlead.dev/v1alpha1
kind: McpServer
metadata: { name: ${name}, namespace: tools }
spec:
  endpoint: ${endpoint}
  egress: ${egress}
  tools: { allow: ["*"] }
  allowedNamespaces: { from: All }
`;
}

function bindingYaml(name: string, servers: readonly string[]): string {
  return `apiVersion: fairlead.dev/v1alpha1
kind: McpBinding
metadata: { name: ${name}, namespace: team }
spec:
  workload: { matchLabels: { app: agent } }
  user: { type: Static, static: { id: robot } }
  servers: [${servers.map((server) => `{ name: ${server}, namespace: tools }`).join(', ')}]
`;
}

const ISSUES = serverYaml(
  'issues',
  'https://mcp.example.com/mcp',
  '{ allowedHosts: [mcp.example.com, "*.login.example.net"], allowedPorts: [443, 8443] }',
);
const INSIDE = serverYaml(
  'inside',
  'https://localhost:9443/mcp',
  '{ allowedHosts: [localhost], inClusterExceptions: [{ host: localhost, cidrs: [127.0.0.0/8, "::1/128"], ports: [9443] }] }',
);
const OUTSIDE = serverYaml(
  'outside',
  'https://localhost:9444/mcp',
  '{ allowedHosts: [localhost], inClusterExceptions: [{ host: localhost, cidrs: [10.0.0.0/8], ports: [9444] }] }',
);
const OPEN = serverYaml(
  'open',
  'https://localhost.invalid/mcp',
  '{ allowedHosts: [localhost.invalid] }',
);
const LOCAL = serverYaml(
  'local',
  'http://127.0.0.1:7401/mcp',
  '{ allowedHosts: [127.0.0.1], allowedPorts: [7401] }',
);

const FILES = {
  'one.yaml': [ISSUES, bindingYaml('agent', ['issues'])].join('---\n'),
  'four.yaml': [
    ISSUES,
    INSIDE,
    OUTSIDE,
    OPEN,
    bindingYaml('agent', ['issues', 'inside', 'outside', 'open']),
  ].join('---\n'),
  'two-bindings.yaml': [
    ISSUES,
    OPEN,
    bindingYaml('agent', ['issues']),
    bindingYaml('other', ['open']),
  ].join('---\n'),
  'local.yaml': [LOCAL, bindingYaml('agent', ['local'])].join('---\n'),
  'no-binding.yaml': ISSUES,
  'bad.yaml': ISSUES.replace('allowedHosts', 'allowdHosts'),
};

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'fairlead-explain-'));
  for (const [name, yaml] of Object.entries(FILES)) await writeFile(join(root, name), yaml);
});
after(() => rm(root, { recursive: true }));

interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function explain(args: readonly string[], stdin = ''): Promise<Result> {
  const child = spawn(process.execPath, [PROGRAM, 'explain', ...args], { cwd: root });
  child.stdin.end(stdin);
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve) => child.once('close', resolve)),
  ]);
  return { code, stdout, stderr };
}

interface Row {
  readonly title: string;
  readonly url: string;
  readonly file: keyof typeof FILES;
  readonly flags?: readonly string[];
  readonly code: number;
  /** Stage and reason. */
  readonly words: string;
  readonly remedy?: RegExp;
}

const NAME = 'https://mcp.example.com';
const ROWS: readonly Row[] = [
  { title: 'the endpoint', url: `${NAME}/mcp`, file: 'one.yaml', code: 0, words: 'url-policy ok' },
  {
    title: 'a host below a suffix rule',
    url: 'https://a.login.example.net/token',
    file: 'one.yaml',
    code: 0,
    words: 'url-policy ok',
  },
  {
    title: 'text that is no URL',
    url: 'mcp.example.com',
    file: 'one.yaml',
    code: 1,
    words: 'parse not-a-url',
    remedy: /absolute URL/,
  },
  {
    title: 'another scheme',
    url: 'ftp://mcp.example.com/',
    file: 'one.yaml',
    code: 1,
    words: 'url-policy scheme',
    remedy: /https/,
  },
  {
    title: 'a password',
    url: 'https://me:s3cret@mcp.example.com/?q=s3cret',
    file: 'one.yaml',
    code: 1,
    words: 'url-policy user-information',
    remedy: /out of the URL/,
  },
  {
    title: 'plain http',
    url: 'http://mcp.example.com/mcp',
    file: 'one.yaml',
    code: 1,
    words: 'url-policy plain-http',
    remedy: /spec\.endpoint of McpServer tools\/issues/,
  },
  {
    title: 'a final dot',
    url: 'https://mcp.example.com./',
    file: 'one.yaml',
    code: 1,
    words: 'url-policy trailing-dot',
    remedy: /final dot/,
  },
  {
    title: 'an address in disguise',
    url: 'https://0x7f.1/',
    file: 'one.yaml',
    code: 1,
    words: 'url-policy ip-literal',
    remedy: /host name/,
  },
  {
    title: 'a host that is not listed',
    url: 'https://api.example.com/',
    file: 'one.yaml',
    code: 1,
    words: 'url-policy host-not-listed',
    remedy: /^Add "api\.example\.com" to spec\.egress\.allowedHosts of McpServer tools\/issues\.$/,
  },
  {
    title: 'a port that is not listed',
    url: `${NAME}:9000/`,
    file: 'one.yaml',
    code: 1,
    words: 'url-policy port-not-listed',
    remedy: /^Add 9000 to spec\.egress\.allowedPorts of McpServer tools\/issues\.$/,
  },
  {
    title: 'a port that the exception of the host does not list',
    url: 'https://localhost:8443/',
    file: 'four.yaml',
    flags: ['--server', 'inside'],
    code: 1,
    words: 'url-policy port-not-listed',
    remedy: /spec\.egress\.inClusterExceptions\[0\]\.ports of McpServer tools\/inside/,
  },
  {
    title: 'of several denials the one that came furthest',
    url: `${NAME}:9000/`,
    file: 'four.yaml',
    code: 1,
    words: 'url-policy port-not-listed',
    remedy: /tools\/issues/,
  },
  {
    title: 'addresses inside the exception',
    url: 'https://localhost:9443/mcp',
    file: 'four.yaml',
    flags: ['--resolve'],
    code: 0,
    words: 'resolve ok',
  },
  {
    title: 'addresses outside the exception',
    url: 'https://localhost:9444/mcp',
    file: 'four.yaml',
    flags: ['--resolve'],
    code: 1,
    words: 'resolve outside-exception',
    remedy: /inClusterExceptions\[0\]\.cidrs of McpServer tools\/outside/,
  },
  {
    title: 'a literal in development',
    url: 'http://127.0.0.1:7401/mcp',
    file: 'local.yaml',
    flags: ['--development'],
    code: 0,
    words: 'ip-literal ok',
  },
];

suite('verdict, exit code and remedy', () => {
  for (const { title, url, file, flags = [], code, words, remedy } of ROWS) {
    test(`${title}: ${words}, exit code ${String(code)}`, async () => {
      const args = ['egress', url, '-f', file, ...flags, '--output', 'json'];
      const { code: actual, stdout, stderr } = await explain(args);
      assert.equal(stderr, '');
      assert.equal(actual, code);
      const page = JSON.parse(stdout) as ExplainPage;
      assert.equal(`${String(page.stage)} ${String(page.reason)}`, words);
      assert.equal(page.verdict, code === 0 ? 'allowed' : 'denied');
      if (remedy === undefined) assert.equal(page.remedy, null);
      else assert.match(page.remedy ?? '', remedy);
      assert.doesNotMatch(stdout, /s3cret/);
    });
  }
});

test('a resolver that fails is unknown, exit code 2', async () => {
  const args = ['egress', 'https://localhost.invalid/mcp', '-f', 'four.yaml', '--resolve'];
  const { code, stdout } = await explain(args);
  assert.equal(code, 2);
  assert.match(stdout, /resolve +address +unknown +dns-(not-found|failed|timeout)/);
  assert.match(stdout, /^ {2}unknown: resolve dns-/m);
});

test('only the server whose endpoint it is is asked, else all, and then it is said', async () => {
  const own = await explain(['egress', `${NAME}/mcp`, '-f', 'four.yaml']);
  assert.match(own.stdout, /^issues /m);
  assert.doesNotMatch(own.stdout, /^inside |Not the endpoint/m);
  const login = await explain(['egress', 'https://a.login.example.net/', '-f', 'four.yaml']);
  for (const alias of ['issues', 'inside', 'outside', 'open'])
    assert.match(login.stdout, new RegExp(`^${alias} `, 'm'));
  assert.match(login.stdout, /Not the endpoint/);
  assert.equal(login.code, 0);
});

test('text: each step on a line, no colours in a pipe', async () => {
  const { stdout, code } = await explain(
    ['egress', `${NAME}:9000/mcp`, '-f', '-'],
    FILES['one.yaml'],
  );
  assert.equal(code, 1);
  assert.equal(
    stdout,
    `  parse       url               allow      scheme https, host mcp.example.com, port 9000, path /mcp

issues  McpServer tools/issues, endpoint https://mcp.example.com/mcp
  url-policy  scheme            allow      https
  url-policy  user-information  allow      none
  url-policy  encryption        allow      https
  url-policy  trailing-dot      allow      none
  url-policy  host-form         allow
  url-policy  ip-literal        allow
  url-policy  host              allow      listed as mcp.example.com (spec.egress.allowedHosts[0])
  url-policy  public-name       allow      hosts are listed by name
  url-policy  port              deny       port-not-listed  9000; spec.egress.allowedPorts: 443, 8443
  resolve     address           not-asked  not asked: the URL is denied
  denied: url-policy port-not-listed
  Add 9000 to spec.egress.allowedPorts of McpServer tools/issues.
`,
  );
  const allowed = await explain(['egress', NAME, '-f', 'one.yaml']);
  assert.match(allowed.stdout, /not resolved \(--resolve asks the resolver\)\n {2}peer /);
  assert.match(
    allowed.stdout,
    / {2}redirect {4}calls {13}not-asked {2}307 and 308 within https:\/\/mcp\.example\.com are followed, 3 at most/,
  );
  assert.ok(allowed.stdout.endsWith('  allowed\n'), allowed.stdout);
});

test('JSON has the same fields whatever the verdict', async () => {
  const fields = ['verdict', 'stage', 'reason', 'remedy', 'binding', 'url', 'servers', 'issues'];
  for (const [url, file] of [
    [NAME, 'one.yaml'],
    ['https://x.example.org', 'one.yaml'],
    ['no url', 'one.yaml'],
    [NAME, 'bad.yaml'],
  ] as const) {
    const { stdout } = await explain(['egress', url, '-f', file, '--output', 'json']);
    assert.deepEqual(Object.keys(JSON.parse(stdout) as object), fields);
  }
});

test('several bindings are listed until one is chosen', async () => {
  const unclear = await explain(['egress', NAME, '-f', 'two-bindings.yaml']);
  assert.deepEqual([unclear.code, unclear.stdout], [64, '']);
  assert.match(unclear.stderr, /Choose one: --binding team\/agent \| team\/other/);
  const args = ['egress', NAME, '-f', 'two-bindings.yaml', '--binding'];
  assert.equal((await explain([...args, 'team/agent'])).code, 0);
  assert.equal((await explain([...args, 'team/other'])).code, 1);
  assert.equal((await explain([...args, 'team/none'])).code, 64);
});

test('bad YAML ends as with validate: every problem, exit code 1, nothing judged', async () => {
  const { code, stdout, stderr } = await explain(['egress', NAME, '-f', 'bad.yaml']);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /bad\.yaml:6:.*spec\.egress\.allowdHosts/);
  const json = await explain(['egress', NAME, '-f', 'bad.yaml', '--output', 'json']);
  const page = JSON.parse(json.stdout) as ExplainPage;
  assert.equal(page.verdict, 'invalid');
  assert.ok(page.issues.length > 0);
});

suite('wrong use ends with exit code 64', () => {
  for (const args of [
    [],
    ['egress'],
    ['egress', NAME],
    ['ingress', NAME, '-f', 'one.yaml'],
    ['egress', NAME, '-f', 'absent'],
    ['egress', NAME, '-f', 'no-binding.yaml'],
    ['egress', NAME, '-f', 'one.yaml', '--server', 'absent'],
    ['egress', NAME, '-f', 'one.yaml', '--output', 'xml'],
  ]) {
    test(args.join(' ') || 'no words', async () => {
      const { code, stderr } = await explain(args);
      assert.equal(code, 64);
      assert.notEqual(stderr, '');
    });
  }
});
