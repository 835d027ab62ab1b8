// The answer to tools/list, spliced from a snapshot's ready-made bytes and the request's id.
// Servers that are missing are named in `_meta`, so that an incomplete list says that it is one.

import { type Era, type RequestId } from '#sidecar/agent-api/exchange.ts';
import { SERVER_INFO, SERVER_INFO_KEY } from '#sidecar/agent-api/answers.ts';
import type { CatalogSnapshot } from '#sidecar/catalog/catalog-snapshot.ts';

/** `_meta` key: [{alias, code, message}] of servers whose tools are not in the list. */
export const MISSING_SERVERS_KEY = 'fairlead.dev/unavailableServers';
/** How long a modern agent may keep a complete list; an incomplete one is asked for again soon. */
const COMPLETE_TTL_MS = 60_000;
const INCOMPLETE_TTL_MS = 5_000;

const tails = new WeakMap<CatalogSnapshot, Partial<Record<Era, string>>>();

export function renderListAnswer(id: RequestId, snapshot: CatalogSnapshot, era: Era): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${tailOf(snapshot, era)}}`;
}

function tailOf(snapshot: CatalogSnapshot, era: Era): string {
  let known = tails.get(snapshot);
  if (known === undefined) tails.set(snapshot, (known = {}));
  return (known[era] ??= renderResult(snapshot, era));
}

function renderResult({ toolsJson, missing }: CatalogSnapshot, era: Era): string {
  const notes = missing.length === 0 ? {} : { [MISSING_SERVERS_KEY]: missing };
  if (era === 'legacy') {
    const meta = missing.length === 0 ? '' : `,"_meta":${JSON.stringify(notes)}`;
    return `{"tools":${toolsJson}${meta}}`;
  }
  const ttlMs = missing.length === 0 ? COMPLETE_TTL_MS : INCOMPLETE_TTL_MS;
  const meta = JSON.stringify({ [SERVER_INFO_KEY]: SERVER_INFO, ...notes });
  return `{"resultType":"complete","tools":${toolsJson},"ttlMs":${ttlMs},"cacheScope":"private","_meta":${meta}}`;
}
