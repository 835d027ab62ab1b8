// A whole node with our image on it: the example pod's sidecar, on a config that the renderer
// wrote, becomes ready, serves the agent beside it, and leaves nothing behind.

import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { parse, stringify } from 'yaml';

import { buildBundle } from '#test/support/container-image/build-bundle.ts';
import { writeImageArchive } from '#test/support/container-image/image-archive.ts';
import { gatherImageContents } from '#test/support/container-image/image-files.ts';
import { whyNoNode } from '#test/support/node-cluster/node-packages.ts';
import { runCommand } from '#test/support/node-cluster/run-command.ts';
import { startNode } from '#test/support/node-cluster/start-node.ts';
import type { TestNode } from '#test/support/node-cluster/start-node.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const EXAMPLES = join(ROOT, 'examples', 'cluster');
const IMAGE = 'localhost/fairlead:test';

const skip = whyNoNode() ?? false;

let directory = '';
let node: TestNode;

before(async () => {
  if (skip !== false) return;
  directory = await mkdtemp(join(tmpdir(), 'fairlead-boot-'));
  await buildBundle(join(directory, 'dist'));
  const { stage, files } = await gatherImageContents(join(directory, 'dist'));
  const archive = join(directory, 'fairlead.tar');
  await writeImageArchive(archive, { name: IMAGE, files, ...stage });
  node = await startNode();
  await node.importImage(archive);
});

after(async () => {
  if (directory === '') return;
  await node?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

test('our image runs on the node as its own user', { skip }, async () => {
  await node.apply(
    stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'version' },
      spec: {
        restartPolicy: 'Never',
        securityContext: { runAsNonRoot: true },
        containers: [
          { name: 'version', image: IMAGE, imagePullPolicy: 'Never', args: ['version'] },
        ],
      },
    }),
  );
  const phase = '--for=jsonpath={.status.phase}=Succeeded';
  await kubectl('wait', 'pod/version', phase, '--timeout=60s');
  assert.match(await kubectl('logs', 'version'), /^fairlead \d/);
});

test('the example pod becomes ready, its agent reaches the sidecar, and it ends in time', {
  skip,
}, async () => {
  const rendered = join(directory, 'rendered');
  const fairlead = [process.execPath, join(ROOT, 'bin', 'fairlead.ts')];
  await runCommand([...fairlead, 'render', EXAMPLES, '--out', rendered]);
  const config = join(rendered, 'default', 'my-agent', 'config.json');
  await kubectl('create', 'configmap', 'fairlead-my-agent', `--from-file=config.json=${config}`);
  await node.apply(await examplePod());
  await kubectl('wait', 'pod/my-agent', '--for=condition=Ready', '--timeout=120s');
  const logs = (): Promise<string> => kubectl('logs', 'my-agent', '-c', 'agent');
  const answer = await untilDefined(async () => /^answer (.*)$/m.exec(await logs())?.[1]);
  const { result } = JSON.parse(answer) as { result: { serverInfo: { name: string } } };
  assert.equal(result.serverInfo.name, 'fairlead');
  await kubectl('delete', 'pod', 'my-agent', '--timeout=60s');
});

test('the node leaves no process, mount, namespace or file behind', { skip }, async () => {
  const { name } = node.namespace;
  const nodeDirectory = join(node.kubeconfigPath, '..');
  await node[Symbol.asyncDispose]();
  assert.ok(!(await readdir('/run/netns')).includes(name));
  assert.ok(!(await readFile('/proc/mounts', 'utf8')).includes(nodeDirectory));
  assert.deepEqual(await processesNaming(nodeDirectory), []);
  await assert.rejects(readdir(nodeDirectory), { code: 'ENOENT' });
});

/** The example as it is, with our image, and for the agent a program that asks once and waits. */
async function examplePod(): Promise<string> {
  const pod = parse(await readFile(join(EXAMPLES, 'agent-pod.yaml'), 'utf8')) as ExamplePod;
  const [sidecar] = pod.spec.initContainers;
  const [agent] = pod.spec.containers;
  assert.ok(sidecar !== undefined && agent !== undefined);
  Object.assign(sidecar, { image: IMAGE, imagePullPolicy: 'Never' });
  const command = ['/usr/bin/node', '-e', AGENT];
  Object.assign(agent, { image: IMAGE, imagePullPolicy: 'Never', command });
  return stringify(pod);
}

interface ExamplePod {
  readonly spec: { readonly initContainers: object[]; readonly containers: object[] };
}

const AGENT = `
  process.on('SIGTERM', () => process.exit(0));
  setInterval(() => {}, 1000);
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'agent', version: '1' } };
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const answer = await fetch(process.env.MCP_URL, { method: 'POST', headers, body });
  console.log('answer ' + (await answer.text()).replace(/^(event|id): .*\\n|^data: ?/gm, '').trim());
`;

async function kubectl(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await node.kubectl(args);
  if (code === 0) return stdout;
  const pods = await node.kubectl(['describe', 'pods']);
  throw new Error(`kubectl ${args.join(' ')}: ${stderr}\n${pods.stdout.slice(-6_000)}`);
}

async function untilDefined(read: () => Promise<string | undefined>): Promise<string> {
  for (;;) {
    const value = await read();
    if (value !== undefined) return value;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function processesNaming(text: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (commandLine.includes(text)) found.push(commandLine.replaceAll('\0', ' '));
  }
  return found;
}
