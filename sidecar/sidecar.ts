// The composition root of the sidecar: builds every part once, in order, and passes it in. What an
// accepted configuration changes is listed in one place, #apply. It decides nothing itself.

import { randomBytes } from 'node:crypto';

import type { Clock, TimerHandle } from '#core/clock.ts';
import type { SidecarConfig } from '#core/config/sidecar-config.ts';
import { FairleadError } from '#core/errors.ts';
import { openHealthServer } from '#core/telemetry/health-server.ts';
import type { HealthServer } from '#core/telemetry/health-server.ts';
import type { CanonicalLog } from '#core/telemetry/canonical-log.ts';
import { createFingerprinter, loadFingerprintKey } from '#core/telemetry/fingerprint.ts';
import type { Fingerprinter } from '#core/telemetry/fingerprint.ts';
import type { Logger } from '#core/telemetry/log.ts';
import { createSidecarMetrics } from '#core/telemetry/metrics.ts';
import type { SidecarMetrics } from '#core/telemetry/metrics.ts';
import { registerProcessMetrics } from '#core/telemetry/process-metrics.ts';

import { staticPrincipal } from '#sidecar/admission/static-principal.ts';
import { AgentApi } from '#sidecar/agent-api/agent-api.ts';
import type { Admission } from '#sidecar/agent-api/agent-api.ts';
import { openLoopbackListener } from '#sidecar/agent-api/loopback-listener.ts';
import type { LoopbackListener } from '#sidecar/agent-api/loopback-listener.ts';
import { SessionStore } from '#sidecar/agent-api/session-store.ts';
import { AuditLog } from '#sidecar/audit/audit-log.ts';
import { ConfigSource } from '#sidecar/config/config-source.ts';
import { lastGoodStore } from '#sidecar/config/last-good-store.ts';
import { atMost, CLOSE_MS, drain } from './drain.ts';
import type { ProxyStatus } from '#sidecar/proxy/egress-path.ts';
import type { Relay, ServerStatus } from '#sidecar/relay/relay.ts';
import type { SidecarSettings } from './settings.ts';
import { MetricsPage } from '#sidecar/status/metrics-page.ts';
import { renderStatusPage } from '#sidecar/status/status-page.ts';
import type { StatusPage } from '#sidecar/status/status-page.ts';

/** Everything behind the agent API. */
export interface Upstreams {
  readonly relay: Relay;
  /** New requests see this configuration when it returns; resolves when what it replaced has closed. */
  apply(config: SidecarConfig): Promise<void>;
  status(): readonly ServerStatus[];
  /** Undefined while servers are reached directly. */
  proxy(): ProxyStatus | undefined;
  /** Why no server is served though all is well here; undefined when nothing speaks against it. */
  notReadyReason(): string | undefined;
  close(graceMs: number): Promise<void>;
}

export interface UpstreamDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: SidecarMetrics;
  readonly isDevelopment: boolean;
  readonly proxyClientDirectory: string | undefined;
}

export interface SidecarOptions {
  readonly settings: SidecarSettings;
  readonly clock: Clock;
  readonly log: Logger;
  /** Writes the line of each request, at every log level. */
  readonly canonicalLog: CanonicalLog;
  readonly openUpstreams: (deps: UpstreamDeps) => Upstreams;
}

const LISTEN_RETRY_MS = 5_000;
/** Requests of a pod without servers: initialize and lists. */
const MIN_REQUEST_BYTES = 1024 * 1024;

export class Sidecar {
  readonly #options: SidecarOptions;
  readonly #startedMs: number;
  readonly #metricsPage = new MetricsPage();
  readonly #metrics: SidecarMetrics;
  readonly #sessions: SessionStore;
  readonly #upstreams: Upstreams;
  readonly #api: AgentApi;
  readonly #source: ConfigSource;
  #health: HealthServer | undefined;
  #listener: LoopbackListener | undefined;
  #listenRetry: TimerHandle | undefined;
  #config: SidecarConfig | undefined;
  #admission: Admission | undefined;
  #isStarted = false;
  #isDraining = false;

  constructor(options: SidecarOptions) {
    const { settings, clock, log, openUpstreams } = options;
    this.#options = options;
    this.#startedMs = clock.monotonicMs();
    this.#metrics = createSidecarMetrics(this.#metricsPage);
    registerProcessMetrics(this.#metricsPage, clock);
    this.#sessions = new SessionStore({
      clock,
      onCloseFailed: (thrown) => log.warn({ err: thrown }, 'a session was not closed cleanly'),
      onCount: (count) => this.#metrics.sessionsChanged('agent', count),
    });
    this.#upstreams = openUpstreams({
      clock,
      log,
      metrics: this.#metrics,
      isDevelopment: settings.isDevelopment,
      proxyClientDirectory: settings.proxyClientDirectory,
    });
    const audit = new AuditLog({
      clock,
      log: options.canonicalLog,
      fingerprinter: openFingerprinter(settings, log),
      metrics: this.#metrics,
    });
    this.#api = new AgentApi({
      clock,
      audit,
      sessions: this.#sessions,
      relay: this.#upstreams.relay,
      admission: () => this.#admitted(),
      statusPage: () => this.status(),
      onListenerFailed: (thrown) => log.error({ err: thrown }, 'a cancellation failed'),
    });
    this.#source = new ConfigSource({
      directory: settings.configDirectory,
      rules: { development: settings.isDevelopment },
      lastGood:
        settings.stateDirectory === undefined ? undefined : lastGoodStore(settings.stateDirectory),
      clock,
      log,
      onAccepted: (config) => this.#apply(config),
      onReload: (outcome) => this.#metrics.configReloaded(outcome, clock.nowMs()),
    });
  }

  get agentPort(): number | undefined {
    return this.#listener?.port;
  }

  get healthPort(): number | undefined {
    return this.#health?.port;
  }

  /** Throws when nothing can ever be served from here: port in use, no configuration directory. */
  async start(): Promise<void> {
    const { settings, log } = this.#options;
    this.#health = await openHealthServer({
      host: settings.healthHost,
      port: settings.healthPort,
      notReadyReason: () => this.#notReadyReason(),
      metrics: () => this.#metricsPage.render(),
    });
    const outcome = await this.#source.start();
    if (typeof outcome === 'object') {
      const publicDetail = `${JSON.stringify(settings.configDirectory)} ${outcome.unusableDirectory}.`;
      throw new FairleadError('CONFIG_UNREADABLE', { publicDetail });
    }
    if (this.#config !== undefined) await this.#listen(this.#config);
    this.#isStarted = true;
    if (this.#config === undefined)
      log.warn({ event: 'waiting', health_port: this.healthPort }, 'waiting for a configuration');
  }

  status(): StatusPage {
    const { clock } = this.#options;
    return renderStatusPage({
      binding: this.#config?.binding,
      config: this.#source.state,
      drain: this.#isDraining ? 'draining' : 'serving',
      uptimeMs: clock.monotonicMs() - this.#startedMs,
      sessions: this.#sessions.size,
      requestsInFlight: this.#api.inFlight,
      openStreams: this.#api.openStreams,
      proxy: this.#upstreams.proxy(),
      servers: this.#upstreams.status(),
      needsRestart: this.#needsRestart(),
    });
  }

  /** The orderly end; resolves when every socket is closed. */
  async drain(): Promise<void> {
    const { clock, log, settings } = this.#options;
    this.#isDraining = true;
    this.#metrics.drainStarted();
    const timeoutMs = this.#config?.drain.timeoutMs ?? 0;
    log.info({ event: 'drain', in_flight: this.#api.inFlight, timeout_ms: timeoutMs }, 'draining');
    const report = await drain({
      clock,
      isNativeSidecar: settings.isNativeSidecar,
      timeoutMs,
      api: this.#api,
      stopAccepting: () => this.#listener?.stopAccepting(),
      closeUpstream: () => this.#closeUpstream(),
      closeAll: () => this.close(),
    });
    log.info(
      { event: 'drain', duration_ms: report.durationMs, interrupted: report.interrupted },
      'drained',
    );
  }

  /** Closes everything at once; remote servers get a moment to hear that their sessions end. */
  async close(): Promise<void> {
    this.#listenRetry?.cancel();
    await Promise.all([
      this.#source.close(),
      this.#listener?.close(),
      this.#health?.close(),
      // The drain has had its moment for that.
      this.#isDraining || atMost(CLOSE_MS, this.#options.clock, this.#closeUpstream()),
    ]);
  }

  #closeUpstream(): Promise<unknown> {
    return Promise.all([this.#sessions.closeAll(), this.#upstreams.close(0)]);
  }

  #apply(config: SidecarConfig): void {
    const { settings, log } = this.#options;
    this.#config = config;
    log.level = settings.logLevel ?? config.telemetry.logLevel;
    this.#metrics.serversAnnounced(config.servers.map((server) => server.alias));
    this.#metrics.configInForce(config.revision);
    this.#upstreams
      .apply(config)
      .catch((thrown: unknown) =>
        log.error({ err: thrown }, 'a replaced server was not closed cleanly'),
      );
    this.#admission = {
      principal: staticPrincipal(config.identity),
      configRevision: config.revision,
      maxRequestBytes: Math.max(
        MIN_REQUEST_BYTES,
        ...config.servers.map((server) => server.limits.maxRequestBytes),
      ),
    };
    this.#upstreams.relay.warmUp('legacy');
    this.#upstreams.relay.warmUp('modern');
    for (const field of this.#needsRestart())
      log.warn({ event: 'config', field }, 'this change needs a restart');
    if (this.#isStarted && this.#listener === undefined) void this.#listenLater(config);
  }

  async #listen(config: SidecarConfig): Promise<void> {
    const { settings, log } = this.#options;
    const listener = await openLoopbackListener(
      settings.agentPort ?? config.listeners.agentPort,
      this.#api.handle,
    );
    this.#api.bindTo(listener.port);
    this.#listener = listener;
    log.info(
      {
        event: 'ready',
        agent_port: listener.port,
        health_port: this.healthPort,
        config_revision: config.revision,
      },
      'sidecar ready',
    );
  }

  /** The first configuration came after the start: a taken port is tried again. */
  async #listenLater(config: SidecarConfig): Promise<void> {
    const { clock, log } = this.#options;
    this.#listenRetry?.cancel();
    try {
      await this.#listen(config);
    } catch (error) {
      log.error({ event: 'listen', err: error }, 'the agent port cannot be opened; trying again');
      this.#listenRetry = clock.setTimer(
        LISTEN_RETRY_MS,
        () => void this.#listenLater(this.#config ?? config),
        { unref: true },
      );
    }
  }

  #admitted(): Admission {
    if (this.#admission === undefined)
      throw new TypeError('the agent port is open before a configuration was accepted');
    return this.#admission;
  }

  #notReadyReason(): string | undefined {
    if (this.#isDraining) return 'draining';
    if (this.#config === undefined) return 'no configuration has been accepted yet';
    if (this.#listener === undefined) return 'the agent port is not open yet';
    return this.#upstreams.notReadyReason();
  }

  #needsRestart(): string[] {
    const { settings } = this.#options;
    const wanted = settings.agentPort ?? this.#config?.listeners.agentPort;
    return this.#listener === undefined ||
      settings.agentPort === 0 ||
      wanted === this.#listener.port
      ? []
      : ['listeners.agentPort'];
  }
}

/** With a key of its own for each process, lines of two processes cannot be correlated; better than a plain hash. */
function openFingerprinter(settings: SidecarSettings, log: Logger): Fingerprinter {
  const { fingerprintKeyFile } = settings;
  if (fingerprintKeyFile === undefined) return createFingerprinter(randomBytes(32));
  try {
    return createFingerprinter(loadFingerprintKey(fingerprintKeyFile));
  } catch (error) {
    log.warn(
      { err: error },
      'the fingerprint key cannot be read or made; fingerprints change at each start',
    );
    return createFingerprinter(randomBytes(32));
  }
}
