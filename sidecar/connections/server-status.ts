// One server as GET /status shows it. Names, states and counts; never a session id, address or token.

import type { ServerConfig } from '#core/config/sidecar-config.ts';
import { exposedNames } from '#sidecar/catalog/tool-name.ts';
import { type ListingState, visibleListing } from '#sidecar/catalog/listing-source.ts';
import type { ServerStatus } from '#sidecar/relay/relay.ts';

import type { ServerLink } from './server-link.ts';

/** `links` are those of all principals; the first one that knows the server speaks for its tools. */
export function serverStatus(server: ServerConfig, links: readonly ServerLink[]): ServerStatus {
  const own = links.filter((link) => link.config.alias === server.alias);
  const identity = { alias: server.alias, namespace: server.namespace, name: server.name };
  const connections = own.reduce((sum, link) => addConnections(sum, link), {
    inFlight: 0,
    queued: 0,
    sockets: 0,
  });
  const best = own.map(bestState).find((state) => state !== undefined);
  if (best === undefined)
    return { ...identity, state: 'pending', tools: [], rejectedTools: [], connections };
  const listed = visibleListing(best.state);
  return {
    ...identity,
    state:
      best.state.kind === 'listed'
        ? 'ok'
        : best.state.kind === 'pending'
          ? 'pending'
          : 'unavailable',
    ...(best.state.kind === 'unavailable'
      ? { reason: `${best.state.error.code}: ${best.state.error.message}` }
      : {}),
    ...(listed === undefined
      ? {}
      : { era: listed.side.era, protocolVersion: listed.side.protocolVersion }),
    ...(listed?.side.serverInfo === undefined ? {} : { serverInfo: listed.side.serverInfo }),
    tools: toolsOf(best.link, best.state),
    rejectedTools: listed?.listing.rejected ?? [],
    connections,
  };
}

interface KnownState {
  readonly link: ServerLink;
  readonly state: ListingState;
}

/** A good listing of either era before a bad one, a bad one before none. */
function bestState(link: ServerLink): KnownState | undefined {
  const states = [link.listings.modern.state, link.listings.legacy.state];
  const state =
    states.find(({ kind }) => kind === 'listed') ??
    states.find(({ kind }) => kind === 'unavailable');
  return state === undefined ? undefined : { link, state };
}

function toolsOf(link: ServerLink, state: ListingState): ServerStatus['tools'] {
  const tools =
    visibleListing(state)?.listing.tools.filter((tool) => link.isToolAllowed(tool.name)) ?? [];
  const names = exposedNames(tools.map((tool) => ({ alias: link.config.alias, tool: tool.name })));
  return tools.map(({ name, definition }, index) => ({
    name: names[index] ?? name,
    remoteName: name,
    ...textMember('title', definition),
    ...textMember('description', definition),
  }));
}

function textMember(
  key: string,
  definition: Readonly<Record<string, unknown>>,
): Record<string, string> {
  const value = definition[key];
  return typeof value === 'string' ? { [key]: value } : {};
}

function addConnections(
  sum: ServerStatus['connections'],
  { partition }: ServerLink,
): ServerStatus['connections'] {
  return {
    inFlight: sum.inFlight + partition.semaphore.inUse,
    queued: sum.queued + partition.semaphore.waiting,
    sockets: sum.sockets + partition.target.pool.stats().connected,
  };
}
