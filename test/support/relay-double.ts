// A relay without remote servers: it answers tools/list and tools/call as the test scripts it, and
// remembers the exchanges that it was given. Stands where the real relay stands, so that the
// agent API is tested over real sockets.

import { answerResult } from '#sidecar/agent-api/answers.ts';
import type { AgentExchange, Era } from '#sidecar/agent-api/exchange.ts';
import type { Relay } from '#sidecar/relay/relay.ts';

export type Script = (exchange: AgentExchange) => unknown;

export const ECHO_TOOL = {
  name: 'desk__echo',
  description: 'Says it again.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
} as const;

export class RelayDouble implements Relay {
  readonly exchanges: AgentExchange[] = [];
  readonly warmedUp: Era[] = [];
  aliases: ReadonlySet<string> = new Set(['desk']);
  onList: Script = (exchange) =>
    answerResult(exchange, {
      tools: [ECHO_TOOL],
      ...(exchange.era === 'modern' ? { ttlMs: 0, cacheScope: 'private' } : {}),
    });
  onCall: Script = (exchange) => answerEcho(exchange);

  listTools(exchange: AgentExchange): void {
    this.exchanges.push(exchange);
    return this.onList(exchange) as undefined;
  }

  callTool(exchange: AgentExchange): void {
    this.exchanges.push(exchange);
    return this.onCall(exchange) as undefined;
  }

  hasAlias(alias: string): boolean {
    return this.aliases.has(alias);
  }

  warmUp(era: Era): void {
    this.warmedUp.push(era);
  }
}

export function answerEcho(exchange: AgentExchange): void {
  const given = exchange.request.params?.['arguments'] as { readonly text?: string } | undefined;
  answerResult(exchange, { content: [{ type: 'text', text: given?.text ?? '' }] });
}
