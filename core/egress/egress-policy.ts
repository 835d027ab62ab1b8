// What one configured server may reach. Immutable: a changed policy is a new pool, and the old
// pool's sockets go with it. URLs that a server names are judged by the same policy and never
// widen it.

export interface InClusterException {
  readonly host: string;
  readonly cidrs: readonly string[];
  readonly ports: readonly number[];
}

export interface EgressPolicy {
  /** Exact hosts or `*.suffix`. The word `*` (any public name) is not offered by the kinds. */
  readonly allowedHosts: readonly string[];
  readonly allowedPorts: readonly number[];
  /** Hosts with private addresses: reached only inside these CIDRs and on these ports. */
  readonly inClusterExceptions: readonly InClusterException[];
  /** Prefixes whose embedded IPv4 address is judged in place of the IPv6 one (RFC 6052). */
  readonly nat64Prefixes?: readonly string[];
  /** Literals judged by their address; never offered by the kinds. */
  readonly allowIpLiterals?: boolean;
  /** Hops of one exchange; the kinds never offer it. */
  readonly maxRedirects?: number;
  /** The host is the egress proxy itself, wherever the platform team runs it; never offered by the kinds. */
  readonly isProxy?: boolean;
  /** `fairlead dev`: http and https to `localhost` and loopback literals that are listed. */
  readonly development: boolean;
}

/** Where in the path of a connection a verdict was reached. */
export type EgressStage =
  | 'url-policy'
  | 'ip-literal'
  | 'resolve'
  | 'connect'
  | 'proxy'
  | 'peer'
  | 'request'
  | 'redirect';

/** Words for metrics and logs; a small closed set. */
export type DenyReason =
  | 'scheme'
  | 'user-information'
  | 'plain-http'
  | 'trailing-dot'
  | 'host-form'
  | 'ip-literal'
  | 'host-not-listed'
  | 'internal-name'
  | 'port-not-listed'
  | 'special-address'
  | 'outside-exception'
  | 'not-loopback'
  | 'no-address'
  | 'other-origin'
  | 'request-form'
  | 'host-header'
  | 'redirect-not-followed'
  | 'redirect-method'
  | 'redirect-location'
  | 'redirect-downgrade'
  | 'redirect-other-origin'
  | 'redirect-loop'
  | 'redirect-limit'
  | 'proxy-denied'
  | 'proxy-lets-through';

export type EgressVerdict =
  | { readonly kind: 'allow' }
  | {
      readonly kind: 'deny';
      readonly stage: EgressStage;
      readonly reason: DenyReason;
      readonly detail?: string;
    };

export type FailureReason =
  | 'dns-not-found'
  | 'dns-failed'
  | 'dns-timeout'
  | 'connect-timeout'
  | 'connect-refused'
  | 'connect-failed'
  | 'tls-name'
  | 'tls-expired'
  | 'tls-untrusted'
  | 'tls-failed'
  | 'ca-bundle'
  | 'peer-gone'
  | 'proxy-certificate'
  | 'proxy-timeout'
  | 'proxy-gone'
  | 'proxy-answer'
  | 'proxy-error'
  | 'proxy-unproven';

/** One canonical record per egress decision; the only place where an address appears. */
export interface EgressDecision {
  readonly verdict: 'allow' | 'deny' | 'failed';
  readonly stage: EgressStage;
  readonly reason: DenyReason | FailureReason | 'ok';
  readonly host: string;
  readonly port: number;
  readonly address?: string;
  readonly detail?: string;
  /** Since the connection attempt began; absent for requests that were refused without one. */
  readonly durationMs?: number;
  /** How long the resolver took; on the first record after a lookup. */
  readonly lookupMs?: number;
  /** Which redirect of its exchange was followed, or refused; the first is 1. */
  readonly hop?: number;
}

export type OnEgressDecision = (record: EgressDecision) => void;
