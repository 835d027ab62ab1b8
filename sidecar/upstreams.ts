// Everything behind the agent API, put together: the registry of servers and the relay that calls
// them. Loaded while the sidecar already answers its probes.

import type { EgressDecision } from '#core/egress/egress-policy.ts';
import type { EgressLogLine } from '#core/telemetry/log-fields.ts';

import { ServerRegistry } from '#sidecar/connections/server-registry.ts';
import { CallRelay } from '#sidecar/relay/call-relay.ts';
import type { UpstreamDeps, Upstreams } from './sidecar.ts';

export function openUpstreams({ clock, log, metrics, isDevelopment }: UpstreamDeps): Upstreams {
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
  return {
    relay: new CallRelay({ registry, clock }),
    apply: (config) => registry.apply(config),
    status: () => registry.status(),
    close: (graceMs) => registry.close(graceMs),
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
