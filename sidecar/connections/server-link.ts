// One configured server as one principal reaches it: the partition, what it lists in each era, and
// which of its tools are allowed. A change of the allowlist keeps the connections; a change of
// anything that connections depend on makes a new link and retires the old one.

import { type ServerConfig, canonicalJson } from '#core/config/sidecar-config.ts';
import type { EgressProxy } from '#core/egress/egress-proxy.ts';
import type { FairleadError } from '#core/errors.ts';
import type { RefreshOutcome, ServerState } from '#core/telemetry/metrics.ts';
import type { Era } from '#sidecar/agent-api/exchange.ts';
import { type Listed, ListingSource, visibleListing } from '#sidecar/catalog/listing-source.ts';
import { compileAllowlist } from '#sidecar/catalog/tool-allowlist.ts';

import { Partition, type PartitionDeps, type PartitionOptions } from './partition.ts';

export interface ServerLinkDeps extends PartitionDeps {
  readonly onCatalogRead?: (alias: string, outcome: RefreshOutcome) => void;
  readonly onServerChanged?: (alias: string, state: ServerState) => void;
}

export interface ServerLinkOptions extends Omit<PartitionOptions, 'onSideChanged'> {
  readonly onChanged: () => void;
}

export class ServerLink {
  readonly partition: Partition;
  readonly listings: Readonly<Record<Era, ListingSource>>;
  readonly #deps: ServerLinkDeps;
  readonly #proxy: EgressProxy | undefined;
  #config: ServerConfig;
  #isToolAllowed: (name: string) => boolean;

  constructor(options: ServerLinkOptions, deps: ServerLinkDeps) {
    const { alias } = options.server;
    this.#deps = deps;
    this.#config = options.server;
    this.#proxy = options.proxy;
    this.#isToolAllowed = compileAllowlist(options.server.tools.allow);
    const onSideChanged = (): void => {
      this.listings.modern.refresh();
      this.listings.legacy.refresh();
    };
    this.partition = new Partition({ ...options, onSideChanged }, deps);
    const source = (era: Era): ListingSource =>
      new ListingSource({
        partition: this.partition,
        era,
        defaultTtlMs: options.server.cache.defaultTtlMs,
        clock: deps.clock,
        log: deps.log,
        onRead: (outcome) => deps.onCatalogRead?.(alias, outcome),
        onChanged: () => {
          this.#tellState();
          if (this.listings[era].state.kind === 'listed')
            this.listings[era === 'modern' ? 'legacy' : 'modern'].retryNow();
          options.onChanged();
        },
        onRefused: () => this.doubt(era),
      });
    this.listings = { modern: source('modern'), legacy: source('legacy') };
  }

  get config(): ServerConfig {
    return this.#config;
  }

  get isToolAllowed(): (name: string) => boolean {
    return this.#isToolAllowed;
  }

  lastListing(era: Era): Listed | undefined {
    return visibleListing(this.listings[era].state);
  }

  /** True when `server` needs no other connections than this link has; then it is taken over. */
  adopt(server: ServerConfig, proxy: EgressProxy | undefined): boolean {
    if (proxy !== this.#proxy) return false;
    if (connectionIdentity(server) !== connectionIdentity(this.#config)) return false;
    this.#config = server;
    this.#isToolAllowed = compileAllowlist(server.tools.allow);
    this.#tellState();
    return true;
  }

  /** What stood in the way is gone, or for this reason no call gets out. */
  reachable(refusal: FairleadError | undefined): void {
    for (const listing of [this.listings.modern, this.listings.legacy]) {
      if (refusal === undefined) listing.retryNow();
      else listing.noteUnavailable(refusal);
    }
  }

  /** The server refuses the way in which it is spoken to: perhaps it is another one now. */
  doubt(era: Era): void {
    this.partition.negotiator.doubt(era);
  }

  #tellState(): void {
    const { modern, legacy } = this.listings;
    const listed = this.lastListing('modern') ?? this.lastListing('legacy');
    const tools = listed?.listing.tools ?? [];
    this.#deps.onServerChanged?.(this.#config.alias, {
      isAvailable: modern.state.kind === 'listed' || legacy.state.kind === 'listed',
      toolCount: tools.filter(({ name }) => this.#isToolAllowed(name)).length,
    });
  }

  retire(graceMs: number): Promise<void> {
    this.listings.modern.close();
    this.listings.legacy.close();
    return this.partition.retire(graceMs);
  }
}

/** Everything but what only the catalog looks at. */
function connectionIdentity({ tools: _tools, priority: _priority, ...rest }: ServerConfig): string {
  return canonicalJson(rest);
}
