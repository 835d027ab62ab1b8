// The sidecar as a process: what it says when it cannot start, what survives a kill, how it ends.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { modernMessage, sendHttp } from '#test/support/agent-api-fixture.ts';
import type { Answer } from '#test/support/agent-api-fixture.ts';
import { ManagedProcess } from '#test/support/control-plane/managed-process.ts';
import {
  KubeletVolume,
  serverConfig,
  sidecarConfig,
  writePlainConfig,
} from '#test/support/sidecar-config.ts';

const ROOT = join(import.meta.dirname, '../..');
const PROGRAM = join(ROOT, 'test/support/sidecar-with-relay-double.ts');
/** Nothing of the tester's own environment. */
const ENV = { PATH: process.env.PATH ?? '', FAIRLEAD_PORT: 'tcp://10.0.0.1:80' };

class Desk {
  readonly root: string;
  readonly config: string;
  readonly state: string;

  private constructor(root: string) {
    this.root = root;
    this.config = join(root, 'config');
    this.state = join(root, 'state');
  }

  static async open(): Promise<Desk> {
    const desk = new Desk(await mkdtemp(join(tmpdir(), 'fairlead-main-')));
    await mkdir(desk.config);
    return desk;
  }

  start(...more: readonly string[]): ManagedProcess {
    const command = [
      process.execPath,
      PROGRAM,
      '--config-dir',
      this.config,
      '--state-dir',
      this.state,
      '--development',
      '--health-port',
      '0',
    ];
    return new ManagedProcess({
      name: 'sidecar',
      env: ENV,
      command: [...command, ...(more.includes('--port') ? [] : ['--port', '0']), ...more],
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true, force: true });
  }
}

interface Ports {
  readonly agent: number;
  readonly health: number;
}

async function portsOf(sidecar: ManagedProcess): Promise<Ports> {
  const [, agent, health] = await sidecar.waitForOutput(
    /"agent_port":(\d+),"health_port":(\d+)[^\n]*"msg":"sidecar ready"/,
  );
  return { agent: Number(agent), health: Number(health) };
}

function call(port: number, script: object, id: unknown = 1): Promise<Answer> {
  const headers = {
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': 'tools/call',
    'Mcp-Name': 'a',
  };
  return sendHttp(port, {
    headers,
    body: modernMessage('tools/call', { name: 'a', arguments: script }, { id }),
  });
}

function get(port: number, path: string): Promise<Answer> {
  return sendHttp(port, { method: 'GET', path });
}

async function untilReadyz(port: number, status: number): Promise<void> {
  while ((await get(port, '/readyz')).status !== status) await new Promise(setImmediate);
}

async function untilInFlight(port: number, count: number): Promise<void> {
  for (;;) {
    const page = (await get(port, '/status')).json as {
      readonly agents?: { readonly requestsInFlight: number };
    };
    if (page.agents?.requestsInFlight === count) return;
    await new Promise(setImmediate);
  }
}

/** Takes a loopback port for as long as it lives. */
async function occupy(): Promise<{ readonly port: number } & AsyncDisposable> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.asyncDispose]: async () => void (await once(server.close(), 'close')) };
}

describe('a start that cannot be', { concurrency: 3 }, () => {
  it('names every wrong option and exits 64; help exits 0', async () => {
    await using wrong = new ManagedProcess({
      name: 'sidecar',
      env: ENV,
      command: [process.execPath, PROGRAM, '--port', 'x', '--what'],
    });
    assert.deepEqual(await wrong.exited, { code: 64, signal: null });
    for (const part of ['--port must be', '--what', '--config-dir', '--help'])
      assert.ok(wrong.output.includes(part), part);
    await using help = new ManagedProcess({
      name: 'sidecar',
      env: ENV,
      command: [process.execPath, PROGRAM, '--help'],
    });
    assert.deepEqual(await help.exited, { code: 0, signal: null });
    assert.match(help.output, /Examples:/);
  });

  it('names a directory that does not exist and exits 78', async () => {
    await using desk = await Desk.open();
    await rm(desk.config, { recursive: true });
    await using sidecar = desk.start();
    assert.deepEqual(await sidecar.exited, { code: 78, signal: null });
    assert.match(sidecar.output, /fairlead sidecar: .*config.* does not exist/);
  });

  it("names a port that is taken, the agents' or the probes', and exits 69 with nothing left open", async () => {
    await using desk = await Desk.open();
    await writePlainConfig(desk.config, sidecarConfig().text);
    await using taken = await occupy();
    for (const flag of ['--port', '--health-port']) {
      await using sidecar = desk.start(flag, String(taken.port));
      assert.deepEqual(await sidecar.exited, { code: 69, signal: null }, flag);
      assert.match(
        sidecar.output,
        new RegExp(`fairlead sidecar: The port is already in use. 127.0.0.1:${taken.port}`),
      );
      assert.ok(!sidecar.output.includes('sidecar ready'));
    }
  });
});

describe('a running sidecar', { concurrency: 3 }, () => {
  it('has threads for many names whose resolver is silent', {
    skip: !existsSync('/proc/self/task'),
  }, async () => {
    await using desk = await Desk.open();
    await writePlainConfig(desk.config, sidecarConfig({ servers: [serverConfig('desk')] }).text);
    await using sidecar = desk.start();
    await portsOf(sidecar);
    assert.ok((await readdir(`/proc/${sidecar.pid}/task`)).length >= 64);
  });

  it('answers probes and metrics on its own port only, agents on the other only (R108)', async () => {
    await using desk = await Desk.open();
    await writePlainConfig(desk.config, sidecarConfig({ servers: [serverConfig('desk')] }).text);
    await using sidecar = desk.start();
    const { agent, health } = await portsOf(sidecar);
    assert.deepEqual((await call(agent, { text: 'hi' })).json.result?.content, [
      { type: 'text', text: 'hi' },
    ]);
    const statuses = async (port: number) =>
      Promise.all(
        ['/livez', '/readyz', '/metrics', '/status', '/mcp'].map(
          async (path) => (await get(port, path)).status,
        ),
      );
    assert.deepEqual(await statuses(health), [200, 200, 200, 404, 404]);
    assert.deepEqual(await statuses(agent), [404, 404, 404, 200, 405]);
    assert.equal((await sendHttp(health, { path: '/livez', body: {} })).status, 405);
    const { text } = await get(health, '/metrics');
    assert.match(text, /^fairlead_calls_total\{.*result_class="ok".*\} 1$/m);
    assert.ok(!/ana|acme|tenant=|user=/.test(text));
  });

  it('takes over every change of its volume without a restart, and keeps what runs when one is wrong (R113)', async () => {
    await using desk = await Desk.open();
    const volume = new KubeletVolume(desk.config);
    await volume.swap(sidecarConfig({ servers: [serverConfig('one')] }).text);
    await using sidecar = desk.start();
    const { agent } = await portsOf(sidecar);
    const listed = async (alias: string) => {
      const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' };
      return (
        await sendHttp(agent, {
          path: `/servers/${alias}/mcp`,
          headers,
          body: modernMessage('tools/list'),
        })
      ).status;
    };
    assert.deepEqual([await listed('one'), await listed('two')], [200, 404]);
    const next = sidecarConfig({ servers: [serverConfig('two')] });
    await volume.swap(next.text);
    await sidecar.waitForOutput(
      new RegExp(`"config_revision":"${next.revision}"[^\n]*configuration accepted`),
    );
    assert.deepEqual([await listed('one'), await listed('two')], [404, 200]);
    const wrong = sidecarConfig({ servers: [serverConfig('two'), serverConfig('two')] });
    await volume.swap(wrong.text);
    await sidecar.waitForOutput(/"error_code":"CONFIG_INVALID"/);
    const { config } = (await get(agent, '/status')).json as unknown as {
      readonly config: Record<string, unknown>;
    };
    assert.deepEqual(
      [config.runningRevision, config.wantedRevision],
      [next.revision, wrong.revision],
    );
    assert.match(JSON.stringify(config.rejected), /servers\[1\]\.alias/);
    assert.equal(await listed('two'), 200);
  });

  it('waits unready, but alive, for a first configuration, and serves when it comes', async () => {
    await using desk = await Desk.open();
    await using sidecar = desk.start();
    const [, health] = await sidecar.waitForOutput(
      /"health_port":(\d+)[^\n]*waiting for a configuration/,
    );
    assert.deepEqual(
      [(await get(Number(health), '/livez')).status, (await get(Number(health), '/readyz')).status],
      [200, 503],
    );
    await writePlainConfig(desk.config, sidecarConfig().text);
    const { agent } = await portsOf(sidecar);
    assert.equal((await call(agent, {})).status, 200);
    assert.equal((await get(Number(health), '/readyz')).status, 200);
  });

  it('killed and started again with a broken configuration runs the last good one, with the same fingerprints', async () => {
    await using desk = await Desk.open();
    const good = sidecarConfig({ servers: [serverConfig('desk')] });
    await writePlainConfig(desk.config, good.text);
    const fingerprints: (string | undefined)[] = [];
    {
      await using sidecar = desk.start();
      const { agent } = await portsOf(sidecar);
      await call(agent, {});
      fingerprints.push((await sidecar.waitForOutput(/"user_fingerprint":"([0-9a-f]+)"/))[1]);
      await sidecar.kill();
    }
    await writeFile(join(desk.config, 'config.json'), good.text.slice(0, 200));
    await using sidecar = desk.start();
    const { agent, health } = await portsOf(sidecar);
    assert.equal((await get(health, '/readyz')).status, 200);
    assert.equal((await call(agent, {})).status, 200);
    fingerprints.push((await sidecar.waitForOutput(/"user_fingerprint":"([0-9a-f]+)"/))[1]);
    assert.equal(fingerprints[0], fingerprints[1]);
    const { config } = (await get(agent, '/status')).json as unknown as {
      readonly config: Record<string, unknown>;
    };
    assert.deepEqual([config.origin, config.runningRevision], ['last-good', good.revision]);
    assert.match(JSON.stringify(config.rejected), /not valid JSON/);
  });
});

describe('the end', { concurrency: 3 }, () => {
  it('of a native sidecar refuses new calls at once and finishes those in flight (R109)', async () => {
    await using desk = await Desk.open();
    await writePlainConfig(desk.config, sidecarConfig().text);
    await using sidecar = desk.start('--native-sidecar');
    const { agent, health } = await portsOf(sidecar);
    const slow = Array.from({ length: 8 }, (_, index) =>
      call(agent, { delayMs: 1_000, text: String(index) }, index),
    );
    await untilInFlight(agent, 8);
    sidecar.signal('SIGTERM');
    await untilReadyz(health, 503);
    const refused = await call(agent, {});
    assert.deepEqual([refused.status, refused.json.error?.data?.code], [503, 'DRAINING']);
    const answers = await Promise.all(slow);
    assert.deepEqual(
      answers.map(({ status, json }) => [status, json.id]),
      answers.map((_, index) => [200, index]),
    );
    assert.deepEqual(await sidecar.exited, { code: 0, signal: null });
  });

  it('of a plain process serves new calls after the signal, and exits 0 when they are done', async () => {
    await using desk = await Desk.open();
    await writePlainConfig(desk.config, sidecarConfig().text);
    await using sidecar = desk.start();
    const { agent, health } = await portsOf(sidecar);
    const first = call(agent, { delayMs: 300 });
    await untilInFlight(agent, 1);
    sidecar.signal('SIGTERM');
    await untilReadyz(health, 503);
    assert.equal((await get(health, '/livez')).status, 200);
    assert.equal((await call(agent, { delayMs: 300 })).status, 200);
    assert.equal((await first).status, 200);
    assert.deepEqual(await sidecar.exited, { code: 0, signal: null });
    assert.match(sidecar.output, /"interrupted":0[^\n]*"msg":"drained"/);
  });

  it('at the deadline answers what hangs, ends open streams with a last event, and exits 0', async () => {
    await using desk = await Desk.open();
    await writePlainConfig(desk.config, sidecarConfig({ drain: { timeoutMs: 3_000 } }).text);
    await using sidecar = desk.start();
    const { agent } = await portsOf(sidecar);
    const hanging = (['queued', 'sent', 'stream'] as const).map((hang) => call(agent, { hang }));
    await untilInFlight(agent, 3);
    sidecar.signal('SIGTERM');
    const [queued, sent, stream] = await Promise.all(hanging);
    assert.match(queued?.text ?? '', /"isError":true.*"code":"DRAINING"/);
    assert.match(sent?.text ?? '', /"isError":true.*"code":"OUTCOME_UNKNOWN"/);
    const events = (stream?.text ?? '').trim().split('\n\n');
    assert.equal(events.length, 2);
    assert.match(events[1] ?? '', /"id":1.*OUTCOME_UNKNOWN/);
    assert.deepEqual(await sidecar.exited, { code: 0, signal: null });
    assert.match(sidecar.output, /"interrupted":3/);
  });

  for (const [first, again] of [
    ['SIGTERM', 'SIGTERM'],
    ['SIGINT', 'SIGTERM'],
  ] as const) {
    it(`loses no call when ${first} is followed by ${again} at once, as under timeout and npm`, async () => {
      await using desk = await Desk.open();
      await writePlainConfig(desk.config, sidecarConfig().text);
      await using sidecar = desk.start();
      const { agent } = await portsOf(sidecar);
      const answer = call(agent, { delayMs: 1_000, text: 'done' });
      await untilInFlight(agent, 1);
      sidecar.signal(first);
      // Two of the same kind would become one on the way; two kinds arrive both.
      if (first === again) await sidecar.waitForOutput(/"msg":"draining"/);
      sidecar.signal(again);
      const { status, text } = await answer;
      assert.equal(status, 200);
      assert.match(text, /done/);
      assert.deepEqual(await sidecar.exited, { code: 0, signal: null });
    });
  }

  it('is immediate at a second signal that is not the first one again', async () => {
    await using desk = await Desk.open();
    await writePlainConfig(desk.config, sidecarConfig().text);
    await using sidecar = desk.start();
    const { agent } = await portsOf(sidecar);
    const lost = call(agent, { hang: 'sent' });
    await untilInFlight(agent, 1);
    sidecar.signal('SIGTERM');
    await sidecar.waitForOutput(/"msg":"draining"/);
    // Longer than what passes the first one on needs; far from the deadline of the drain.
    await systemClock.sleep(700);
    sidecar.signal('SIGTERM');
    await assert.rejects(lost);
    assert.deepEqual(await sidecar.exited, { code: 1, signal: null });
  });

  it('comes with the end of the parent when that was asked for', async () => {
    await using desk = await Desk.open();
    await writePlainConfig(desk.config, sidecarConfig().text);
    const args = [
      PROGRAM,
      '--config-dir',
      desk.config,
      '--development',
      '--port',
      '0',
      '--health-port',
      '0',
      '--exit-with-parent',
    ];
    const child = spawn(process.execPath, args, { env: ENV, stdio: ['pipe', 'pipe', 'inherit'] });
    const exited = once(child, 'exit');
    let output = '';
    for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
      output += String(chunk);
      if (output.includes('sidecar ready')) break;
    }
    child.stdin.end();
    // Nobody reads the log any more either.
    child.stdout.destroy();
    assert.deepEqual(await exited, [0, null]);
  });

  it('comes before any configuration as well', async () => {
    await using desk = await Desk.open();
    await using sidecar = desk.start();
    await sidecar.waitForOutput(/waiting for a configuration/);
    sidecar.signal('SIGINT');
    assert.deepEqual(await sidecar.exited, { code: 0, signal: null });
  });
});
