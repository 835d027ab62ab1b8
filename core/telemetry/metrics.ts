// The sidecar's metrics. One method per event; the path of a call touches plain numbers only.
// Labels are server aliases (bounded by the configuration) and closed sets of words: never a
// tenant, a user, a session, a tool or an address. Names and meanings: docs/metrics.md, held by a
// test.

import type { EgressDecision } from '#core/egress/egress-policy.ts';

import { DurationHistogram, OTHER_KEY, registerScraped, SeriesFamily } from './series.ts';
import type { MetricRegistry, Sample, ScrapedMetric } from './series.ts';

/** A binding has at most 64 servers. */
const MAX_SERVERS = 64;
/** verdict x stage x reason is a closed set, of which a server sees few; the cap holds if not. */
const MAX_WORD_SERIES = 64;

export interface FinishedCall {
  /** Undefined for requests that belong to no one server. */
  readonly alias: string | undefined;
  readonly resultClass: string;
  readonly durationMs: number;
  readonly queueWaitMs: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
}

export type ReloadOutcome = 'applied' | 'unchanged' | 'rejected' | 'unreadable';
export type RefreshOutcome = 'changed' | 'unchanged' | 'failed';

export interface ServerState {
  readonly isAvailable: boolean;
  /** Tools that agents see, also while the server is away. */
  readonly toolCount: number;
}

export type CountedDecision = Pick<
  EgressDecision,
  'verdict' | 'stage' | 'reason' | 'lookupMs' | 'hop'
>;

export interface SidecarMetrics {
  /** The servers of the configuration in force; the series of all others go. */
  serversAnnounced(aliases: readonly string[]): void;
  callStarted(alias: string): void;
  /** Also for a call that was refused before `callStarted`: then `wasStarted` is false. */
  callFinished(call: FinishedCall, wasStarted?: boolean): void;
  egressDecided(alias: string, decision: CountedDecision): void;
  configReloaded(outcome: ReloadOutcome, atMs: number): void;
  /** The revision in force. */
  configInForce(revision: string): void;
  sessionsChanged(side: 'agent' | 'upstream', count: number): void;
  catalogRefreshed(alias: string, outcome: RefreshOutcome): void;
  /** What agents get of a server from now on. */
  serverChanged(alias: string, state: ServerState): void;
  drainStarted(): void;
}

class ServerSeries {
  inFlight = 0;
  tools = 0;
  isAvailable = 0;
  requestBytes = 0;
  responseBytes = 0;
  readonly results = new Map<string, number>();
  readonly refreshes = new Map<RefreshOutcome, number>();
  readonly duration = new DurationHistogram();
  readonly queueWait = new DurationHistogram();
  readonly egress = new Map<string, DecisionCount>();
  readonly lookup = new DurationHistogram();
  redirectHops = 0;
}

interface DecisionCount {
  readonly words: Readonly<Record<'verdict' | 'stage' | 'reason', string>>;
  count: number;
}

interface GlobalSeries {
  readonly reloads: Map<ReloadOutcome, number>;
  readonly sessions: Map<'agent' | 'upstream', number>;
  lastReloadMs: number;
  isLastReloadGood: boolean;
  revision: string;
  isDraining: boolean;
}

export function createSidecarMetrics(registry: MetricRegistry): SidecarMetrics {
  const servers = new SeriesFamily(MAX_SERVERS, () => new ServerSeries());
  const global: GlobalSeries = {
    reloads: new Map(),
    sessions: new Map(),
    lastReloadMs: 0,
    isLastReloadGood: false,
    revision: '',
    isDraining: false,
  };
  for (const metric of [
    ...callMetrics(servers),
    ...catalogMetrics(servers),
    ...egressMetrics(servers),
    ...globalMetrics(global),
  ])
    registerScraped(registry, metric);
  return {
    serversAnnounced: (aliases) => servers.announce(aliases),
    callStarted: (alias) => {
      servers.get(alias).inFlight += 1;
    },
    callFinished: (call, wasStarted = true) =>
      countCall(servers.get(call.alias ?? OTHER_KEY), call, wasStarted),
    egressDecided: (alias, decision) => countEgress(servers.get(alias), decision),
    configReloaded(outcome, atMs) {
      increment(global.reloads, outcome);
      global.lastReloadMs = atMs;
      global.isLastReloadGood = outcome === 'applied' || outcome === 'unchanged';
    },
    configInForce: (revision) => {
      global.revision = revision;
    },
    sessionsChanged: (side, count) => void global.sessions.set(side, count),
    catalogRefreshed: (alias, outcome) => increment(servers.get(alias).refreshes, outcome),
    serverChanged(alias, { isAvailable, toolCount }) {
      const series = servers.get(alias);
      series.isAvailable = Number(isAvailable);
      series.tools = toolCount;
    },
    drainStarted: () => {
      global.isDraining = true;
    },
  };
}

function countCall(series: ServerSeries, call: FinishedCall, wasStarted: boolean): void {
  // A server that was removed and announced again has a new series; it never goes below zero.
  if (wasStarted && series.inFlight > 0) series.inFlight -= 1;
  increment(series.results, call.resultClass);
  series.duration.observeMs(call.durationMs);
  series.queueWait.observeMs(call.queueWaitMs);
  series.requestBytes += call.requestBytes;
  series.responseBytes += call.responseBytes;
}

function countEgress(
  series: ServerSeries,
  { verdict, stage, reason, lookupMs, hop }: CountedDecision,
): void {
  if (lookupMs !== undefined) series.lookup.observeMs(lookupMs);
  if (hop !== undefined && verdict === 'allow') series.redirectHops += 1;
  const { egress } = series;
  const key = `${verdict} ${stage} ${reason}`;
  const known = egress.get(key);
  if (known !== undefined) known.count += 1;
  else if (egress.size < MAX_WORD_SERIES)
    egress.set(key, { words: { verdict, stage, reason }, count: 1 });
}

function increment<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

type SampleServer = (
  series: ServerSeries,
  labels: { readonly server: string },
) => readonly Sample[];

function samplesPerServer(servers: SeriesFamily<ServerSeries>) {
  return (sample: SampleServer) => (): readonly Sample[] =>
    servers.entries().flatMap(([server, series]) => [...sample(series, { server })]);
}

function callMetrics(servers: SeriesFamily<ServerSeries>): readonly ScrapedMetric[] {
  const perServer = samplesPerServer(servers);
  const duration = 'fairlead_call_duration_seconds';
  const queueWait = 'fairlead_call_queue_wait_seconds';
  return [
    {
      name: 'fairlead_calls_total',
      help: 'Requests answered, refused and failed ones included, by server and result class.',
      type: 'counter',
      labelNames: ['server', 'result_class'],
      samples: perServer((series, labels) => countsOf(series.results, 'result_class', labels)),
    },
    {
      name: duration,
      help: 'Time from the whole request to the end of the answer, in seconds.',
      type: 'histogram',
      labelNames: ['server'],
      samples: perServer((series, labels) => series.duration.samples(duration, labels)),
    },
    {
      name: queueWait,
      help: 'Time that a call waited for a permit, in seconds.',
      type: 'histogram',
      labelNames: ['server'],
      samples: perServer((series, labels) => series.queueWait.samples(queueWait, labels)),
    },
    {
      name: 'fairlead_calls_in_flight',
      help: 'Calls that have begun and are not yet answered.',
      type: 'gauge',
      labelNames: ['server'],
      samples: perServer((series, labels) => [{ labels, value: series.inFlight }]),
    },
    {
      name: 'fairlead_call_bytes_total',
      help: 'Bytes of request bodies and of answers.',
      type: 'counter',
      labelNames: ['server', 'direction'],
      samples: perServer((series, labels) => [
        { labels: { ...labels, direction: 'request' }, value: series.requestBytes },
        { labels: { ...labels, direction: 'response' }, value: series.responseBytes },
      ]),
    },
  ];
}

function catalogMetrics(servers: SeriesFamily<ServerSeries>): readonly ScrapedMetric[] {
  const perServer = samplesPerServer(servers);
  return [
    {
      name: 'fairlead_catalog_tools',
      help: 'Allowed tools of a server in the current catalog.',
      type: 'gauge',
      labelNames: ['server'],
      samples: perServer((series, labels) => [{ labels, value: series.tools }]),
    },
    {
      name: 'fairlead_catalog_refreshes_total',
      help: "Reads of a server's tool list, by outcome.",
      type: 'counter',
      labelNames: ['server', 'outcome'],
      samples: perServer((series, labels) => countsOf(series.refreshes, 'outcome', labels)),
    },
    {
      name: 'fairlead_server_available',
      help: "1 while the server's tool list can be read, else 0.",
      type: 'gauge',
      labelNames: ['server'],
      samples: perServer((series, labels) => [{ labels, value: series.isAvailable }]),
    },
  ];
}

function egressMetrics(servers: SeriesFamily<ServerSeries>): readonly ScrapedMetric[] {
  const perServer = samplesPerServer(servers);
  const lookup = 'fairlead_egress_lookup_seconds';
  return [
    {
      name: 'fairlead_egress_decisions_total',
      help: 'Egress decisions, one per connection, followed redirect and refused request.',
      type: 'counter',
      labelNames: ['server', 'verdict', 'stage', 'reason'],
      samples: perServer(({ egress }, labels) =>
        [...egress.values()].map(({ words, count }) => ({
          labels: { ...labels, ...words },
          value: count,
        })),
      ),
    },
    {
      name: lookup,
      help: 'Time that the resolver took for a name, in seconds.',
      type: 'histogram',
      labelNames: ['server'],
      samples: perServer((series, labels) => series.lookup.samples(lookup, labels)),
    },
    {
      name: 'fairlead_egress_redirect_hops_total',
      help: 'Redirects that were followed.',
      type: 'counter',
      labelNames: ['server'],
      samples: perServer(({ redirectHops }, labels) => [{ labels, value: redirectHops }]),
    },
  ];
}

function globalMetrics(global: GlobalSeries): readonly ScrapedMetric[] {
  const one = (name: string, help: string, read: () => number): ScrapedMetric => ({
    name,
    help,
    type: 'gauge',
    labelNames: [],
    samples: () => [{ labels: {}, value: read() }],
  });
  return [
    {
      name: 'fairlead_config_reloads_total',
      help: 'Reads of a changed configuration, by outcome.',
      type: 'counter',
      labelNames: ['outcome'],
      samples: () => countsOf(global.reloads, 'outcome', {}),
    },
    {
      name: 'fairlead_config_info',
      help: 'Always 1; the revision in force is a label.',
      type: 'gauge',
      labelNames: ['revision'],
      samples: () =>
        global.revision === '' ? [] : [{ labels: { revision: global.revision }, value: 1 }],
    },
    one(
      'fairlead_config_last_reload_successful',
      '1 when the last read of the configuration was good, else 0.',
      () => Number(global.isLastReloadGood),
    ),
    one(
      'fairlead_config_last_reload_timestamp_seconds',
      'When the configuration was last read, in seconds since the Unix epoch.',
      () => global.lastReloadMs / 1000,
    ),
    {
      name: 'fairlead_sessions',
      help: 'Open legacy sessions, with agents and with servers.',
      type: 'gauge',
      labelNames: ['side'],
      samples: () => countsOf(global.sessions, 'side', {}),
    },
    one('fairlead_draining', '1 while the process finishes its last calls, else 0.', () =>
      Number(global.isDraining),
    ),
  ];
}

function countsOf(
  counts: ReadonlyMap<string, number>,
  label: string,
  labels: Readonly<Record<string, string>>,
): readonly Sample[] {
  return [...counts].map(([word, value]) => ({ labels: { ...labels, [label]: word }, value }));
}
