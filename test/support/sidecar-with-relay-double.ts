// A whole sidecar process whose remote servers are scripted: tools/call waits `delayMs` and answers
// its text; `hang` never answers (with `sent`, as if the request had gone out), `stream` opens an
// event stream and then hangs. Started as a child process by tests of signals and restarts.

import { systemClock } from '#core/clock.ts';
import { startStream } from '#sidecar/agent-api/answers.ts';
import type { AgentExchange } from '#sidecar/agent-api/exchange.ts';
import { main } from '#sidecar/main.ts';

import { answerEcho, RelayDouble } from './relay-double.ts';

interface Script {
  readonly delayMs?: number;
  readonly hang?: 'queued' | 'sent' | 'stream';
}

let hasHung = false;

async function call(exchange: AgentExchange): Promise<void> {
  const { delayMs = 0, hang } = (exchange.request.params?.['arguments'] ?? {}) as Script;
  if (hang !== undefined) {
    hasHung = true;
    exchange.record.attempts = hang === 'queued' ? 0 : 1;
    if (hang === 'stream')
      startStream(exchange).send('{"jsonrpc":"2.0","method":"notifications/message"}');
    return;
  }
  await systemClock.sleep(delayMs);
  answerEcho(exchange);
}

const relay = new RelayDouble();
relay.onCall = call;
process.exitCode = await main(process.argv.slice(2), {
  openUpstreams: () => ({
    relay,
    apply: async (config) =>
      void (relay.aliases = new Set(config.servers.map(({ alias }) => alias))),
    status: () => [],
    proxy: () => undefined,
    notReadyReason: () => undefined,
    // A server that hangs does not hear either that its sessions end; that must not hold up the end.
    close: () => (hasHung ? new Promise<void>(() => {}) : Promise.resolve()),
  }),
});
