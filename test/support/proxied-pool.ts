// A guarded pool whose only way out is a proxy on loopback, with the policy and the resolver of a
// public host: that the target is on loopback, too, only the fake proxy knows.

import { systemClock } from '#core/clock.ts';
import type { EgressProxy, ProxyRefusal } from '#core/egress/egress-proxy.ts';
import type { GuardedPoolOptions } from '#core/egress/guarded-pool.ts';
import { ProxyRoute } from '#core/egress/proxy-route.ts';
import type { ProxyIdentity, ProxyRouteOptions } from '#core/egress/proxy-route.ts';

import { HOST, openPool, policyFor, resolvesTo } from './egress-pool.ts';
import type { Opened } from './egress-pool.ts';

export const PUBLIC_ADDRESS = '93.184.215.14';
export const NO_IDENTITY: ProxyIdentity = { caPem: undefined, client: undefined };

export interface RouteChange extends Partial<ProxyRouteOptions> {
  readonly resolvesLocally?: boolean;
  readonly refusal?: () => ProxyRefusal | undefined;
}

/** Lets everything through that the fake proxy does. */
export function routeTo(port: number, change: RouteChange = {}): EgressProxy {
  const { resolvesLocally = true, refusal = () => undefined, ...rest } = change;
  const route = new ProxyRoute({
    proxy: { host: '127.0.0.1', port, isTls: false },
    identity: () => NO_IDENTITY,
    clock: systemClock,
    ...rest,
  });
  return {
    resolvesLocally,
    refusal,
    connect: (request, done) => route.connect(request, done),
  };
}

/** To `HOST` on `port`, as it is for a server on the internet. */
export function openProxiedPool(
  port: number,
  proxy: EgressProxy,
  change: Partial<GuardedPoolOptions> = {},
): Opened {
  return openPool(port, {
    policy: policyFor(port, {
      allowedHosts: [HOST, 'other.test'],
      allowedPorts: [port],
      inClusterExceptions: [],
    }),
    resolve: resolvesTo(PUBLIC_ADDRESS),
    proxy,
    ...change,
  });
}
