// The answer to GET /status: which configuration runs and why not another, which servers are
// reachable and which tools they give, what is in flight. Pure. Holds no tenant, no user, no
// session id and no secret: any program in the pod may read it.

import { VERSION } from '#core/version.ts';

import type { ConfigState } from '#sidecar/config/config-source.ts';
import type { ProxyStatus } from '#sidecar/proxy/egress-path.ts';
import type { ServerStatus } from '#sidecar/relay/relay.ts';

export type DrainState = 'serving' | 'draining';

export interface StatusInput {
  readonly binding: { readonly namespace: string; readonly name: string } | undefined;
  readonly config: ConfigState;
  readonly drain: DrainState;
  readonly uptimeMs: number;
  readonly sessions: number;
  readonly requestsInFlight: number;
  readonly openStreams: number;
  /** Undefined while servers are reached directly. */
  readonly proxy: ProxyStatus | undefined;
  readonly servers: readonly ServerStatus[];
  /** What a change of the configuration cannot do without a restart. */
  readonly needsRestart: readonly string[];
}

export interface StatusPage {
  readonly version: string;
  readonly uptimeSeconds: number;
  readonly state: DrainState;
  readonly binding: StatusInput['binding'] | null;
  readonly config: {
    readonly runningRevision: string | null;
    /** `last-good`: from the disk, because the directory held nothing usable at the start. */
    readonly origin: string | null;
    readonly wantedRevision: string | null;
    readonly rejected: {
      readonly code: string;
      readonly issues: readonly { readonly path: string; readonly message: string }[];
    } | null;
    readonly needsRestart: readonly string[];
  };
  readonly agents: {
    readonly sessions: number;
    readonly requestsInFlight: number;
    readonly openStreams: number;
  };
  readonly proxy: ProxyStatus | null;
  readonly servers: readonly ServerStatus[];
}

export function renderStatusPage(input: StatusInput): StatusPage {
  const { config } = input;
  return {
    version: VERSION,
    uptimeSeconds: Math.floor(input.uptimeMs / 1000),
    state: input.drain,
    binding: input.binding ?? null,
    config: {
      runningRevision: config.runningRevision ?? null,
      origin: config.origin ?? null,
      wantedRevision: config.wantedRevision ?? null,
      rejected: config.rejection ?? null,
      needsRestart: input.needsRestart,
    },
    agents: {
      sessions: input.sessions,
      requestsInFlight: input.requestsInFlight,
      openStreams: input.openStreams,
    },
    proxy: input.proxy ?? null,
    servers: input.servers,
  };
}
