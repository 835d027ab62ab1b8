// The orderly end of a plain process under load, seen from 32 callers: who began is answered, and
// nobody begins after the sidecar has said that it is no longer ready.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { sendHttp } from '#test/support/agent-api-fixture.ts';
import { ManagedProcess } from '#test/support/control-plane/managed-process.ts';
import { FakeMcpServer } from '#test/support/fake-mcp-server.ts';
import { serverConfig, sidecarConfig, writePlainConfig } from '#test/support/sidecar-config.ts';

const CALLERS = 32;
const DRAIN_MS = 8_000;

interface Tally {
  begun: number;
  answered: number;
  readonly faults: string[];
}

test('on SIGTERM under load every call that has begun is answered, and the process exits 0 before its deadline (R109)', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-sigterm-'));
  await using server = await FakeMcpServer.start({
    era: 'both',
    onCall: async (call) => {
      await systemClock.sleep(50 + (Number(call.arguments['n']) % 10) * 60);
      return { content: [{ type: 'text', text: `answer-${String(call.arguments['n'])}` }] };
    },
  });
  const base = serverConfig('up', server.port);
  const config = sidecarConfig({
    servers: [{ ...base, limits: { ...base.limits, maxConcurrency: 64 } }],
    drain: { timeoutMs: DRAIN_MS },
  });
  await writePlainConfig(directory, config.text);
  const root = join(import.meta.dirname, '../..');
  const command = [
    process.execPath,
    join(root, 'bin/fairlead.ts'),
    'sidecar',
    '--config-dir',
    directory,
    '--port',
    '0',
    '--health-port',
    '0',
    '--development',
  ];
  await using sidecar = new ManagedProcess({ name: 'sidecar', command });
  const [, agentPort = '0', healthPort = '0'] = await sidecar.waitForOutput(
    /"agent_port":(\d+),"health_port":(\d+)/,
  );
  const tally: Tally = { begun: 0, answered: 0, faults: [] };
  const callers = Array.from({ length: CALLERS }, (_, index) =>
    callUntilUnready(index, {
      agentPort: Number(agentPort),
      healthPort: Number(healthPort),
      tally,
    }),
  );
  await systemClock.sleep(1_500);
  const signalledMs = systemClock.monotonicMs();
  sidecar.signal('SIGTERM');
  await Promise.all(callers);
  const exit = await sidecar.exited;
  const tookMs = systemClock.monotonicMs() - signalledMs;
  assert.deepEqual(tally.faults, []);
  assert.equal(tally.answered, tally.begun);
  assert.ok(tally.answered > CALLERS, `${String(tally.answered)} calls`);
  assert.deepEqual(exit, { code: 0, signal: null });
  assert.ok(tookMs < DRAIN_MS);
  assert.equal(server.received('tools/call').length, tally.begun);
  await rm(directory, { recursive: true });
});

interface Caller {
  readonly agentPort: number;
  readonly healthPort: number;
  readonly tally: Tally;
}

async function callUntilUnready(
  index: number,
  { agentPort, healthPort, tally }: Caller,
): Promise<void> {
  for (let round = 0; ; round += 1) {
    const ready = await sendHttp(healthPort, { method: 'GET', path: '/readyz' });
    if (ready.status !== 200) return;
    const n = index * 100_000 + round;
    tally.begun += 1;
    try {
      const answer = await sendHttp(agentPort, { headers: MODERN_HEADERS, body: modernCall(n) });
      if (answer.text.includes(`answer-${String(n)}`)) tally.answered += 1;
      else tally.faults.push(answer.text);
    } catch (error) {
      tally.faults.push(String(error));
    }
  }
}

const MODERN_HEADERS = {
  'MCP-Protocol-Version': '2026-07-28',
  'Mcp-Method': 'tools/call',
  'Mcp-Name': 'up__echo',
};

function modernCall(n: number): object {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  return {
    jsonrpc: '2.0',
    id: n,
    method: 'tools/call',
    params: { name: 'up__echo', arguments: { n }, _meta },
  };
}
