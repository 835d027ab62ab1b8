// One immutable view of all tools that a principal may use in one era: the table that routes calls
// and the bytes that answer tools/list, made once per change and never per call. Calls in flight
// keep the snapshot they started with.

import { createHash } from 'node:crypto';

import type { ServerConfig } from '#core/config/sidecar-config.ts';
import type { Era } from '#sidecar/agent-api/exchange.ts';
import type { ServerLink } from '#sidecar/connections/server-link.ts';
import { presentTool } from '#sidecar/upstream/bridge-tools.ts';
import type { RemoteTool } from '#sidecar/upstream/upstream-types.ts';

import { type ListingState, visibleListing } from './listing-source.ts';
import { decideToolEffect, type ToolEffect } from './tool-effect.ts';
import { exposedNames } from './tool-name.ts';

export interface CatalogTool {
  /** The name that the agent sees. */
  readonly name: string;
  readonly remote: RemoteTool;
  readonly effect: ToolEffect;
  readonly link: ServerLink;
}

export interface MissingServer {
  readonly alias: string;
  /** An error code, or `PENDING` while the first attempt runs. */
  readonly code: string;
  readonly message: string;
}

export interface CatalogSnapshot {
  /** 12 hex digits of SHA-256 over the listed tools; equal content, equal id. */
  readonly id: string;
  readonly tools: ReadonlyMap<string, CatalogTool>;
  /** A JSON array of the tool definitions, in this era's shape and with exposed names. */
  readonly toolsJson: string;
  readonly missing: readonly MissingServer[];
}

export interface SnapshotSource {
  readonly link: ServerLink;
  readonly config: ServerConfig;
  readonly isAllowed: (toolName: string) => boolean;
  readonly state: ListingState;
}

export interface SnapshotOptions {
  readonly era: Era;
  /** `/servers/{alias}/mcp`: tools keep their own names. */
  readonly hasBareNames: boolean;
}

interface Candidate {
  readonly source: SnapshotSource;
  readonly remote: RemoteTool;
  readonly json: Readonly<Record<string, unknown>>;
}

/** Sources in the order in which their tools are listed (priority, then alias). */
export function buildCatalogSnapshot(
  sources: readonly SnapshotSource[],
  options: SnapshotOptions,
): CatalogSnapshot {
  const candidates = sources.flatMap((source) => candidatesOf(source, options.era));
  const names = options.hasBareNames
    ? candidates.map((candidate) => candidate.remote.name)
    : exposedNames(
        candidates.map(({ source, remote }) => ({ alias: source.config.alias, tool: remote.name })),
      );
  const tools = new Map<string, CatalogTool>();
  const definitions: string[] = [];
  for (const [index, candidate] of candidates.entries()) {
    const name = names[index];
    if (name === undefined || tools.has(name)) continue;
    const { source, remote } = candidate;
    tools.set(name, {
      name,
      remote,
      link: source.link,
      effect: decideToolEffect(source.config.tools, remote.name, remote.definition),
    });
    definitions.push(JSON.stringify({ ...candidate.json, name }));
  }
  const toolsJson = `[${definitions.join(',')}]`;
  return { id: snapshotId(toolsJson), tools, toolsJson, missing: sources.flatMap(missingOf) };
}

function candidatesOf(source: SnapshotSource, era: Era): Candidate[] {
  const listed = visibleListing(source.state);
  if (listed === undefined) return [];
  return listed.listing.tools
    .filter((remote) => source.isAllowed(remote.name))
    .map((remote) => ({
      source,
      remote,
      json: presentTool(remote.definition, listed.side.era, era),
    }));
}

function missingOf({ config, state }: SnapshotSource): MissingServer[] {
  switch (state.kind) {
    case 'listed':
      return [];
    case 'pending':
      return [
        {
          alias: config.alias,
          code: 'PENDING',
          message: 'The server is being asked for its tools.',
        },
      ];
    case 'unavailable':
      return [{ alias: config.alias, code: state.error.code, message: state.error.message }];
    default:
      return state satisfies never;
  }
}

function snapshotId(toolsJson: string): string {
  return createHash('sha256').update(toolsJson).digest('hex').slice(0, 12);
}
