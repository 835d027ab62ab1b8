// What one principal sees at one address (all servers, or one alias) in one era. Rebuilds its
// snapshot when a listing or the configuration changed, and swaps it in one assignment.

import type { Era } from '#sidecar/agent-api/exchange.ts';
import type { ServerLink } from '#sidecar/connections/server-link.ts';

import {
  buildCatalogSnapshot,
  type CatalogSnapshot,
  type CatalogTool,
} from './catalog-snapshot.ts';

export interface CatalogViewOptions {
  readonly era: Era;
  readonly alias: string | undefined;
  /** Current links, best priority first; changes with the configuration. */
  readonly links: () => readonly ServerLink[];
}

export class CatalogView {
  readonly #options: CatalogViewOptions;
  #snapshot: CatalogSnapshot | undefined;

  constructor(options: CatalogViewOptions) {
    this.#options = options;
  }

  /** A listing or the configuration changed; the next look builds anew. */
  invalidate(): void {
    this.#snapshot = undefined;
  }

  current(): CatalogSnapshot {
    return (this.#snapshot ??= this.#build());
  }

  find(name: string): CatalogTool | undefined {
    return this.current().tools.get(name);
  }

  /** Resolves at once when every server has been tried; else when the pending ones have, at most their connect timeouts. */
  untilTried(): Promise<void> | undefined {
    const { era } = this.#options;
    const pending: Promise<void>[] = [];
    for (const link of this.#links()) {
      const source = link.listings[era];
      if (source.isPending) pending.push(source.firstAttempt());
      else source.poke();
    }
    return pending.length === 0 ? undefined : Promise.all(pending).then(() => undefined);
  }

  /** The same for the one server whose tool this name could be. */
  untilTriedFor(name: string): Promise<void> | undefined {
    const { era } = this.#options;
    const links = this.#links().filter(
      (link) => this.#couldOwn(link, name) && link.listings[era].isPending,
    );
    return links.length === 0
      ? undefined
      : Promise.all(links.map((link) => link.listings[era].firstAttempt())).then(() => undefined);
  }

  /** The server whose tools are not known yet and whose tool this name could be. */
  unavailableOwner(name: string): ServerLink | undefined {
    const { era } = this.#options;
    return this.#links().find(
      (link) =>
        this.#couldOwn(link, name) &&
        link.listings[era].state.kind === 'unavailable' &&
        link.lastListing(era) === undefined,
    );
  }

  /** Full names whose bare name is `name`: what the caller may have meant. */
  candidates(name: string): string[] {
    const found: string[] = [];
    for (const tool of this.current().tools.values())
      if (tool.remote.name === name && tool.name !== name) found.push(tool.name);
    return found;
  }

  #links(): readonly ServerLink[] {
    const { alias, links } = this.#options;
    return alias === undefined ? links() : links().filter((link) => link.config.alias === alias);
  }

  #couldOwn(link: ServerLink, name: string): boolean {
    return this.#options.alias !== undefined || name.startsWith(`${link.config.alias}__`);
  }

  #build(): CatalogSnapshot {
    const { era, alias } = this.#options;
    const sources = this.#links().map((link) => ({
      link,
      config: link.config,
      isAllowed: link.isToolAllowed,
      state: link.listings[era].state,
    }));
    return buildCatalogSnapshot(sources, { era, hasBareNames: alias !== undefined });
  }
}
