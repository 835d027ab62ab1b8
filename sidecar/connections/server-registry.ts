// All servers of the current configuration, for each principal that has called. Applying a new
// configuration swaps what new calls see at once; servers that went away or changed are retired
// in the background, their calls finishing on what they started with.

import type { ServerConfig, SidecarConfig } from '#core/config/sidecar-config.ts';
import type { EgressProxy } from '#core/egress/egress-proxy.ts';
import type { FairleadError } from '#core/errors.ts';
import { tenantId, userId } from '#core/identity/ids.ts';
import type { Era, Principal } from '#sidecar/agent-api/exchange.ts';
import { CatalogView } from '#sidecar/catalog/catalog-view.ts';
import type { ServerStatus } from '#sidecar/relay/relay.ts';

import { ServerLink } from './server-link.ts';
import type { ServerLinkDeps } from './server-link.ts';
import { serverStatus } from './server-status.ts';

export class ServerRegistry {
  readonly #deps: ServerLinkDeps;
  readonly #worlds = new Map<string, PrincipalServers>();
  /** The same, found without making a key for each call. */
  #byPrincipal = new WeakMap<Principal, PrincipalServers>();
  #config: SidecarConfig | undefined;
  #proxy: EgressProxy | undefined;

  constructor(deps: ServerLinkDeps) {
    this.#deps = deps;
  }

  /** New calls see this configuration from now on. Resolves when everything it replaced is closed. */
  async apply(config: SidecarConfig, proxy?: EgressProxy): Promise<void> {
    const previous = this.#config;
    this.#config = config;
    this.#proxy = proxy;
    const isSamePrincipal = previous === undefined || samePrincipal(previous, config);
    const gone = isSamePrincipal ? [] : [...this.#worlds.values()];
    if (!isSamePrincipal) this.#forgetWorlds();
    const graceMs = config.drain.timeoutMs;
    await Promise.allSettled([
      ...gone.map((world) => world.close(graceMs)),
      ...[...this.#worlds.values()].map((world) => world.apply(config, proxy)),
    ]);
  }

  hasAlias(alias: string): boolean {
    return this.#config?.servers.some((server) => server.alias === alias) ?? false;
  }

  /** Lists all servers of the configured user in the background, so that the first agent finds them listed. */
  warmUp(era: Era): void {
    if (this.#config === undefined) return;
    const { tenant, user } = this.#config.identity;
    const principal = { tenant: tenantId(tenant), user: userId(user.id), agent: 'default' };
    void this.view(principal, era, undefined).untilTried();
  }

  view(principal: Principal, era: Era, alias: string | undefined): CatalogView {
    return this.#world(principal).view(era, alias);
  }

  /** What stood in the way of all servers is gone, or for this reason no call gets out. */
  reachable(refusal: FairleadError | undefined): void {
    for (const world of this.#worlds.values())
      for (const link of world.links()) link.reachable(refusal);
  }

  /** Status of every configured server, in the order of the configuration. */
  status(): ServerStatus[] {
    const links = [...this.#worlds.values()].flatMap((world) => [...world.links()]);
    return (this.#config?.servers ?? []).map((server) => serverStatus(server, links));
  }

  /** Ends what is left: sessions are told, sockets closed. */
  async close(graceMs: number): Promise<void> {
    const worlds = [...this.#worlds.values()];
    this.#forgetWorlds();
    await Promise.allSettled(worlds.map((world) => world.close(graceMs)));
  }

  #forgetWorlds(): void {
    this.#worlds.clear();
    this.#byPrincipal = new WeakMap();
  }

  #world(principal: Principal): PrincipalServers {
    const remembered = this.#byPrincipal.get(principal);
    if (remembered !== undefined) return remembered;
    const world = this.#worldByKey(principal);
    this.#byPrincipal.set(principal, world);
    return world;
  }

  #worldByKey(principal: Principal): PrincipalServers {
    const key = JSON.stringify([principal.tenant, principal.user]);
    const known = this.#worlds.get(key);
    if (known !== undefined) return known;
    const world = new PrincipalServers(principal, this.#deps);
    if (this.#config !== undefined) void world.apply(this.#config, this.#proxy);
    this.#worlds.set(key, world);
    return world;
  }
}

function samePrincipal(a: SidecarConfig, b: SidecarConfig): boolean {
  return (
    a.identity.tenant === b.identity.tenant &&
    a.identity.user.id === b.identity.user.id &&
    a.binding.namespace === b.binding.namespace
  );
}

class PrincipalServers {
  readonly #principal: Principal;
  readonly #deps: ServerLinkDeps;
  readonly #views = new Map<string, CatalogView>();
  readonly #generations = new Map<string, number>();
  #links: readonly ServerLink[] = [];

  constructor(principal: Principal, deps: ServerLinkDeps) {
    this.#principal = principal;
    this.#deps = deps;
  }

  links(): readonly ServerLink[] {
    return this.#links;
  }

  view(era: Era, alias: string | undefined): CatalogView {
    const key = alias === undefined ? era : `${era} ${alias}`;
    const known = this.#views.get(key);
    if (known !== undefined) return known;
    const view = new CatalogView({ era, alias, links: () => this.#links });
    this.#views.set(key, view);
    return view;
  }

  async apply(config: SidecarConfig, proxy: EgressProxy | undefined): Promise<void> {
    const old = new Map(this.#links.map((link) => [link.config.alias, link]));
    const links: ServerLink[] = [];
    for (const server of config.servers) {
      const known = old.get(server.alias);
      if (known !== undefined && known.adopt(server, proxy)) {
        links.push(known);
        old.delete(server.alias);
      } else {
        links.push(this.#open(server, config.binding.namespace, proxy));
      }
    }
    this.#links = links;
    this.#forgetViews(config);
    await Promise.allSettled([...old.values()].map((link) => link.retire(config.drain.timeoutMs)));
  }

  close(graceMs: number): Promise<unknown> {
    const links = this.#links;
    this.#links = [];
    this.#views.clear();
    return Promise.allSettled(links.map((link) => link.retire(graceMs)));
  }

  #open(
    server: ServerConfig,
    bindingNamespace: string,
    proxy: EgressProxy | undefined,
  ): ServerLink {
    const generation = (this.#generations.get(server.alias) ?? 0) + 1;
    this.#generations.set(server.alias, generation);
    return new ServerLink(
      {
        server,
        principal: this.#principal,
        bindingNamespace,
        generation,
        proxy,
        onChanged: () => this.#invalidate(),
      },
      this.#deps,
    );
  }

  #invalidate(): void {
    for (const view of this.#views.values()) view.invalidate();
  }

  /** Views of aliases that are gone are dropped with their names and bytes. */
  #forgetViews(config: SidecarConfig): void {
    const aliases = new Set(config.servers.map((server) => server.alias));
    for (const key of this.#views.keys()) {
      const alias = key.split(' ')[1];
      if (alias !== undefined && !aliases.has(alias)) this.#views.delete(key);
    }
    for (const alias of this.#generations.keys())
      if (!aliases.has(alias)) this.#generations.delete(alias);
    this.#invalidate();
  }
}
