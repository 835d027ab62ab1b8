// Answers tools/list and tools/call: finds the principal's view of the catalog, and hands a call to
// the one server that the snapshot names. The model picks names only; nothing in a call can set a
// URL, tenant, user or scope.

import type { Clock } from '#core/clock.ts';
import { FairleadError } from '#core/errors.ts';
import { answerError, answerJsonBytes, asFairleadError } from '#sidecar/agent-api/answers.ts';
import type { AgentExchange, Era } from '#sidecar/agent-api/exchange.ts';
import type { CatalogView } from '#sidecar/catalog/catalog-view.ts';
import type { ServerRegistry } from '#sidecar/connections/server-registry.ts';

import { InputRounds } from './input-rounds.ts';
import { renderListAnswer } from './list-answer.ts';
import type { Relay } from './relay.ts';
import { ToolCall } from './tool-call.ts';

export interface CallRelayOptions {
  readonly registry: ServerRegistry;
  readonly clock: Clock;
}

export class CallRelay implements Relay {
  readonly #registry: ServerRegistry;
  readonly #clock: Clock;
  readonly #inputRounds = new InputRounds();

  constructor({ registry, clock }: CallRelayOptions) {
    this.#registry = registry;
    this.#clock = clock;
  }

  hasAlias(alias: string): boolean {
    return this.#registry.hasAlias(alias);
  }

  warmUp(era: Era): void {
    this.#registry.warmUp(era);
  }

  listTools(exchange: AgentExchange): void {
    if (exchange.request.params?.['cursor'] !== undefined) {
      answerError(
        exchange,
        new FairleadError('INVALID_PARAMS', { publicDetail: 'There is no such page.' }),
      );
      return;
    }
    const view = this.#viewOf(exchange);
    afterwards(exchange, view.untilTried(), () => {
      const snapshot = view.current();
      exchange.record.catalogSnapshotId = snapshot.id;
      exchange.record.resultClass = 'ok';
      answerJsonBytes(exchange, 200, renderListAnswer(exchange.request.id, snapshot, exchange.era));
    });
  }

  callTool(exchange: AgentExchange): void {
    const name = exchange.request.params?.['name'];
    if (typeof name !== 'string') {
      answerError(
        exchange,
        new FairleadError('INVALID_PARAMS', { publicDetail: 'params.name must be a string.' }),
      );
      return;
    }
    const view = this.#viewOf(exchange);
    if (this.#start(exchange, view, name)) return;
    afterwards(exchange, view.untilTriedFor(name), () => {
      if (!this.#start(exchange, view, name)) refuseUnknown(exchange, view, name);
    });
  }

  #start(exchange: AgentExchange, view: CatalogView, name: string): boolean {
    const snapshot = view.current();
    const tool = snapshot.tools.get(name);
    if (tool === undefined) return false;
    exchange.record.catalogSnapshotId = snapshot.id;
    new ToolCall({ exchange, tool, clock: this.#clock, inputRounds: this.#inputRounds }).start();
    return true;
  }

  #viewOf(exchange: AgentExchange): CatalogView {
    return this.#registry.view(exchange.principal, exchange.era, exchange.alias);
  }
}

function refuseUnknown(exchange: AgentExchange, view: CatalogView, name: string): void {
  const owner = view.unavailableOwner(name);
  if (owner !== undefined) {
    const { state } = owner.listings[exchange.era];
    exchange.record.alias = owner.config.alias;
    answerError(
      exchange,
      state.kind === 'unavailable' ? state.error : new FairleadError('SERVER_UNAVAILABLE'),
    );
    return;
  }
  const candidates = view.candidates(name);
  const hint =
    candidates.length === 0
      ? `Unknown tool: ${JSON.stringify(name.slice(0, 128))}.`
      : `Did you mean ${candidates.map((candidate) => JSON.stringify(candidate)).join(' or ')}?`;
  answerError(exchange, new FairleadError('UNKNOWN_TOOL', { publicDetail: hint }));
}

/** Goes on at once when there is nothing to wait for: the warm path makes no promise. */
function afterwards(
  exchange: AgentExchange,
  wait: Promise<void> | undefined,
  then: () => void,
): void {
  if (wait === undefined) {
    then();
    return;
  }
  wait.then(then).catch((error: unknown) => answerError(exchange, asFairleadError(error)));
}
