// Waits for the first tools/call that comes back through a target that was just started: opens a
// session and calls, again and again every two milliseconds, as an impatient agent would.
// It never counts an error answer as an answer.

import { Agent, request } from 'node:http';

import type { Clock } from '#core/clock.ts';

const RETRY_MS = 2;
const DEADLINE_MS = 30_000;
const MARKER = 'first-call-through';

export interface FirstCallOptions {
  readonly port: number;
  readonly tool: string;
  readonly clock: Clock;
  readonly isAlive: () => boolean;
}

interface Answer {
  readonly status: number;
  readonly sessionId: string | undefined;
  readonly text: string;
}

export async function waitForFirstCall({
  port,
  tool,
  clock,
  isAlive,
}: FirstCallOptions): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const deadline = clock.monotonicMs() + DEADLINE_MS;
  try {
    let reason = 'nothing was tried';
    while (isAlive()) {
      if (clock.monotonicMs() > deadline)
        throw new Error(`no answered tools/call in ${DEADLINE_MS} ms; last: ${reason}`);
      const outcome = await tryCall(agent, port, tool);
      if (outcome === 'answered') return;
      reason = outcome;
      await clock.sleep(RETRY_MS);
    }
    throw new Error(`the process ended; last: ${reason}`);
  } finally {
    agent.destroy();
  }
}

/** `answered`, or why not. */
async function tryCall(agent: Agent, port: number, tool: string): Promise<string> {
  try {
    const clientInfo = { name: 'fairlead-bench', version: '1.0.0' };
    const opened = await post(agent, port, {
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
    });
    if (opened.status !== 200) return `initialize: ${opened.status} ${opened.text}`;
    const params = { name: tool, arguments: { text: MARKER } };
    const called = await post(agent, port, {
      method: 'tools/call',
      params,
      sessionId: opened.sessionId,
    });
    const isAnswered =
      called.status === 200 &&
      called.text.includes(MARKER) &&
      !/"isError":\s*true|"error":/.test(called.text);
    return isAnswered ? 'answered' : `tools/call: ${called.status} ${called.text}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

interface Message {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly sessionId?: string | undefined;
}

function post(agent: Agent, port: number, { method, params, sessionId }: Message): Promise<Answer> {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  if (method !== 'initialize') headers['mcp-protocol-version'] = '2025-11-25';
  if (sessionId !== undefined) headers['mcp-session-id'] = sessionId;
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { agent, host: '127.0.0.1', port, path: '/mcp', method: 'POST', headers },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.on('error', reject);
        response.on('end', () => {
          const id = response.headers['mcp-session-id'];
          resolve({
            status: response.statusCode ?? 0,
            sessionId: typeof id === 'string' ? id : undefined,
            text,
          });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  });
}
