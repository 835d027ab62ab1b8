// The composition root of the operator: builds every part once, in order, and passes it in. Caches
// fill while it waits for the lease; controllers run only while it leads. It decides nothing itself.

import { randomBytes } from 'node:crypto';

import { Registry, collectDefaultMetrics } from 'prom-client';

import type { Clock } from '#core/clock.ts';
import { type HealthServer, openHealthServer } from '#core/telemetry/health-server.ts';
import type { Logger } from '#core/telemetry/log.ts';

import { EventRecorder } from '#operator/kube/events.ts';
import { kubeConfigLoader } from '#operator/kube/kube-config.ts';
import { KubeClient } from '#operator/kube/kube-client.ts';
import { OPEN_GATE } from '#operator/kube/write-gate.ts';
import { enqueueChanges } from '#operator/reconcile/enqueue-changes.ts';
import { createBindingReconciler } from '#operator/reconcile/mcp-binding/reconcile-binding.ts';
import { createServerReconciler } from '#operator/reconcile/mcp-server/reconcile-server.ts';
import { openInformers } from '#operator/reconcile/open-informers.ts';
import { untilSchemasServed } from '#operator/reconcile/served-schemas.ts';
import { type Informers, World } from '#operator/reconcile/world.ts';
import { ControllerLoop, type Reconcile } from '#operator/watch/controller-loop.ts';
import { LeaderLease } from '#operator/watch/leader-lease.ts';
import { createOperatorMetrics, type OperatorMetrics } from '#operator/watch/metrics.ts';
import { WorkQueue } from '#operator/watch/work-queue.ts';

import type { OperatorSettings } from './settings.ts';

const LEASE_NAME = 'fairlead-operator';
const STOP_GRACE_MS = 20_000;
const CONCURRENCY = 8;

export interface OperatorOptions {
  readonly settings: OperatorSettings;
  readonly clock: Clock;
  readonly log: Logger;
  /** The lease was lost: the process must end now, without another write. */
  readonly onLost: (reason: string) => void;
}

export class Operator {
  readonly #options: OperatorOptions;
  readonly #registry = new Registry();
  readonly #metrics: OperatorMetrics;
  readonly #stopping = new AbortController();
  #client: KubeClient | undefined;
  #lease: LeaderLease | undefined;
  #informers: Informers | undefined;
  #events: EventRecorder | undefined;
  #loops: readonly ControllerLoop[] = [];
  #servers: readonly HealthServer[] = [];
  #isSynced = false;

  constructor(options: OperatorOptions) {
    this.#options = options;
    this.#metrics = createOperatorMetrics(this.#registry);
    collectDefaultMetrics({ register: this.#registry });
  }

  /** Opens the ports, fills the caches, waits to lead, then reconciles until stopped. */
  async run(): Promise<void> {
    await this.#listen();
    const { settings, clock, log } = this.#options;
    const client = await this.#openClient();
    this.#lease = settings.electsLeader ? this.#openLease(client) : undefined;
    const gated = client.gatedBy(this.#lease ?? OPEN_GATE);
    await untilSchemasServed({ client, clock, log, signal: this.#stopping.signal });
    const informers = openInformers({
      client,
      clock,
      log,
      metricsFor: (resource) => this.#metrics.informer(resource),
      namespaces: settings.watchNamespaces,
    });
    this.#informers = informers;
    const world = new World(informers, client);
    const queues = { servers: this.#queue('mcpserver'), bindings: this.#queue('mcpbinding') };
    enqueueChanges(informers, world, queues);
    for (const informer of Object.values(informers)) informer.start();
    await Promise.all(Object.values(informers).map((informer) => informer.synced));
    this.#isSynced = true;
    log.info({ event: 'synced' }, 'caches are filled');
    await this.#untilLeading();
    const events = new EventRecorder({
      client: gated,
      clock,
      log,
      controller: 'fairlead.dev/operator',
      instance: settings.instance,
      metrics: this.#metrics.events,
    });
    this.#events = events;
    const parts = { world, client: gated, events, clock, ownWrites: world.ownWrites };
    this.#loops = [
      this.#loop('mcpserver', queues.servers, createServerReconciler(parts)),
      this.#loop('mcpbinding', queues.bindings, createBindingReconciler(parts)),
    ];
    for (const loop of this.#loops) loop.start();
    log.info({ event: 'leading' }, 'reconciling');
  }

  /** The orderly end: unready, workers done, lease given back, everything closed. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the operator is stopping'));
    await Promise.all(this.#loops.map((loop) => loop.stop(STOP_GRACE_MS)));
    await this.#events?.close();
    await this.#lease?.release();
    await Promise.all(Object.values(this.#informers ?? {}).map((informer) => informer.stop()));
    await this.#client?.[Symbol.asyncDispose]();
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  async #listen(): Promise<void> {
    const { settings, log } = this.#options;
    const common = {
      host: '0.0.0.0',
      notReadyReason: () => this.#notReadyReason(),
      metrics: async () => ({
        contentType: this.#registry.contentType,
        text: await this.#registry.metrics(),
      }),
    };
    const health = await openHealthServer({ ...common, port: settings.healthPort });
    this.#servers = [health];
    const metrics = await openHealthServer({ ...common, port: settings.metricsPort });
    this.#servers = [health, metrics];
    log.info(
      { event: 'ready', health_port: health.port, metrics_port: metrics.port },
      'operator started',
    );
  }

  #notReadyReason(): string | undefined {
    if (this.#stopping.signal.aborted) return 'stopping';
    return this.#isSynced ? undefined : 'the caches are not filled yet';
  }

  async #openClient(): Promise<KubeClient> {
    const { settings, clock } = this.#options;
    const source =
      settings.kubeconfigPath === undefined ? {} : { kubeconfigPath: settings.kubeconfigPath };
    this.#client = await KubeClient.open({
      loadConfig: kubeConfigLoader(source),
      clock,
      metrics: this.#metrics.client,
    });
    return this.#client;
  }

  #openLease(client: KubeClient): LeaderLease {
    const { settings, clock, log, onLost } = this.#options;
    const lease = new LeaderLease({
      client,
      namespace: settings.leaseNamespace ?? client.namespace,
      name: LEASE_NAME,
      identity: `${settings.instance}_${randomBytes(4).toString('hex')}`,
      clock,
      log,
      onLost,
      metrics: this.#metrics.lease(LEASE_NAME),
    });
    lease.start();
    return lease;
  }

  async #untilLeading(): Promise<void> {
    if (this.#lease === undefined) return;
    this.#options.log.info({ event: 'standby' }, 'waiting for the leader lease');
    await this.#lease.acquired;
  }

  #queue(name: string): WorkQueue {
    return new WorkQueue({ name, clock: this.#options.clock, metrics: this.#metrics.queue(name) });
  }

  #loop(name: string, queue: WorkQueue, reconcile: Reconcile): ControllerLoop {
    const { clock, log } = this.#options;
    return new ControllerLoop({
      name,
      queue,
      reconcile,
      clock,
      log,
      metrics: this.#metrics.controller(name),
      concurrency: CONCURRENCY,
    });
  }
}
