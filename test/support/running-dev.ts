// `fairlead dev` as a child process on a directory of its own: its events, its ports, its end.

import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { modernMessage, sendHttp } from './agent-api-fixture.ts';
import { ManagedProcess } from '#test/support/control-plane/managed-process.ts';
import { until } from './sidecar-fixture.ts';

const PROGRAM = join(import.meta.dirname, '../../bin/fairlead.ts');
export const TOOLS = [{ name: 'echo' }, { name: 'other' }];

export type Event = Readonly<Record<string, unknown>>;

export function manifests(port: number, allow: string): string {
  return `apiVersion: fairlead.dev/v1alpha1
kind: McpServer
metadata: { name: notes }
spec:
  endpoint: http://127.0.0.1:${String(port)}/mcp
  egress: { allowedHosts: [127.0.0.1], allowedPorts: [${String(port)}] }
  tools: { allow: ${allow} }
---
apiVersion: fairlead.dev/v1alpha1
kind: McpBinding
metadata: { name: desk }
spec:
  workload: { matchLabels: { app: desk } }
  user: { type: Static, static: { id: me } }
  servers: [{ name: notes }]
`;
}

export class RunningDev implements AsyncDisposable {
  readonly directory: string;
  readonly temporary: string;
  readonly process: ManagedProcess;

  constructor(directory: string, ...flags: string[]) {
    this.directory = directory;
    // In a session of its own, like a job in a terminal: a signal to its group is what Ctrl-C sends.
    const node = ['setsid', process.execPath, PROGRAM];
    const command = [...node, 'dev', directory, '--output', 'json', '--port', '0', ...flags];
    // What a killed one leaves behind goes with the test.
    this.temporary = mkdtempSync(join(tmpdir(), 'fairlead-dev-temp-'));
    const env = { ...process.env, TMPDIR: this.temporary };
    this.process = new ManagedProcess({ name: 'dev', command, env });
  }

  events(): Event[] {
    return this.process.output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Event);
  }

  async event(name: string, count = 1): Promise<Event> {
    await until(
      () =>
        this.events().filter((event) => event['event'] === name).length >= count ||
        this.process.exit !== undefined,
      20_000,
    );
    const found = this.events().filter((event) => event['event'] === name)[count - 1];
    assert.ok(found !== undefined, this.process.output);
    return found;
  }

  /** Ctrl-C in a terminal reaches the whole foreground group. */
  pressCtrlC(): void {
    process.kill(-this.process.pid, 'SIGINT');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process.stop();
    for (const path of [this.directory, this.temporary])
      await rm(path, { recursive: true, force: true });
  }
}

export async function makeDirectory(files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-dev-test-'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  return directory;
}

export async function listed(port: number): Promise<string[]> {
  const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' };
  const answer = await sendHttp(port, { headers, body: modernMessage('tools/list') });
  return ((answer.json.result?.['tools'] as { name: string }[] | undefined) ?? []).map(
    ({ name }) => name,
  );
}

export async function gone(port: number): Promise<void> {
  let isGone = false;
  for (let tries = 0; tries < 100 && !isGone; tries += 1) {
    isGone = await sendHttp(port, { method: 'GET', path: '/status' }).then(
      () => false,
      () => true,
    );
    if (!isGone) await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok(isGone, `port ${String(port)} still answers`);
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => probe.once('listening', resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
