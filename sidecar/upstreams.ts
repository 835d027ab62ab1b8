// Everything behind the agent API, put together: the way out, the registry of servers and the relay
// that calls them. Loaded while the sidecar already answers its probes.

import type { EgressDecision } from '#core/egress/egress-policy.ts';
import type { EgressLogLine } from '#core/telemetry/log-fields.ts';

import { ServerRegistry } from '#sidecar/connections/server-registry.ts';
import { EgressPath } from '#sidecar/proxy/egress-path.ts';
import { CallRelay } from '#sidecar/relay/call-relay.ts';
import type { UpstreamDeps, Upstreams } from './sidecar.ts';

export function openUpstreams(deps: UpstreamDeps): Upstreams {
  const { clock, log, metrics, isDevelopment } = deps;
  const onEgressDecision = (alias: string, decision: EgressDecision): void => {
    metrics.egressDecided(alias, decision);
    const line = egressLine(alias, decision);
    if (decision.verdict === 'allow') log.info(line, 'egress');
    else log.warn(line, 'egress');
  };
  let sessions = 0;
  const registry = new ServerRegistry({
    clock,
    log,
    isDevelopment,
    onEgressDecision,
    onCatalogRead: (alias, outcome) => metrics.catalogRefreshed(alias, outcome),
    onServerChanged: (alias, state) => metrics.serverChanged(alias, state),
    onSession: (change) => metrics.sessionsChanged('upstream', (sessions += change)),
  });
  const path = new EgressPath({
    clock,
    log,
    clientDirectory: deps.proxyClientDirectory,
    onReachable: (refusal) => registry.reachable(refusal),
  });
  return {
    relay: new CallRelay({ registry, clock }),
    apply: async (config) => {
      const { proxy, retire } = path.switchTo(config.proxy);
      await registry.apply(config, proxy);
      retire();
    },
    status: () => registry.status(),
    proxy: () => path.status(),
    notReadyReason: () => path.notReadyReason(),
    close: async (graceMs) => {
      await registry.close(graceMs);
      path.close();
    },
  };
}

function egressLine(alias: string, decision: EgressDecision): EgressLogLine {
  const { durationMs, lookupMs, ...rest } = decision;
  return {
    event: 'egress',
    alias,
    ...rest,
    ...(durationMs === undefined ? {} : { duration_ms: durationMs }),
    ...(lookupMs === undefined ? {} : { lookup_ms: lookupMs }),
  };
}
