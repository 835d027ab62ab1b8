// An informer of ConfigMaps on the fake API server with a fake clock, and a record of what its handlers hear.

import assert from 'node:assert/strict';

import { KubeClient } from '#operator/kube/kube-client.ts';
import { CONFIG_MAPS } from '#operator/kube/kube-object.ts';
import type { KubeObject } from '#operator/kube/kube-object.ts';
import { Informer, withoutManagedFields } from '#operator/watch/informer.ts';
import type { InformerMetrics, InformerOptions } from '#operator/watch/informer.ts';
import { FakeApiServer } from './fake-api-server.ts';
import { FakeClock } from './fake-clock.ts';

export function configMap(name: string, data: Record<string, string> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data };
}

export function addedFrame(
  name: string,
  version: number,
  data: Record<string, string> = {},
): string {
  const metadata = { name, namespace: 'default', uid: name, resourceVersion: String(version) };
  return `${JSON.stringify({ type: 'ADDED', object: { ...configMap(name, data), metadata } })}\n`;
}

const QUIET = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

interface SceneParts {
  readonly api: FakeApiServer;
  readonly client: KubeClient;
  readonly clock: FakeClock;
}

export class InformerScene implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly changes: string[] = [];
  readonly relists: string[] = [];
  readonly errors: unknown[] = [];
  drift = 0;
  contacts = 0;
  readonly api: FakeApiServer;
  readonly client: KubeClient;
  readonly informer: Informer;

  private constructor(parts: SceneParts, options: Partial<InformerOptions>) {
    const { api, client, clock } = parts;
    this.clock = clock;
    this.api = api;
    this.client = client;
    const metrics: InformerMetrics = {
      contact: () => void (this.contacts += 1),
      size: () => undefined,
      watchStarted: () => undefined,
      relist: (reason) => void this.relists.push(reason),
      drift: (differences) => (this.drift += differences),
    };
    this.informer = new Informer({
      client,
      resource: CONFIG_MAPS,
      clock,
      random: () => 0,
      metrics,
      log: { ...QUIET, error: (details: unknown) => void this.errors.push(details) },
      transform: withoutManagedFields,
      ...options,
    });
    this.informer.addHandler((old, current, { key, isInitialList }) => {
      const what = old === undefined ? 'add' : current === undefined ? 'delete' : 'update';
      this.changes.push(`${what} ${key}${isInitialList ? ' (initial)' : ''}`);
    });
  }

  static async open(options: Partial<InformerOptions> = {}): Promise<InformerScene> {
    const api = await FakeApiServer.start();
    const clock = new FakeClock();
    const client = await KubeClient.open({
      loadConfig: api.configLoader(),
      clock,
      random: () => 0,
    });
    return new InformerScene({ api, client, clock }, options);
  }

  /** Starts, and waits for the first list and watch. */
  async startWatching(): Promise<void> {
    this.informer.start();
    await this.informer.synced;
    await this.untilWatches(1);
  }

  /** Until `count` watches have been opened in all, moving the clock on where something waits. */
  async untilWatches(count: number, stepMs = 100): Promise<void> {
    await this.until(
      () => this.api.watches.length >= count && this.api.openWatches.length === 1,
      stepMs,
    );
  }

  async until(condition: () => boolean, stepMs = 0): Promise<void> {
    while (!condition()) {
      await new Promise((resolve) => setImmediate(resolve));
      if (stepMs > 0 && !condition()) this.clock.advance(stepMs);
    }
  }

  get watch() {
    const [watch] = this.api.openWatches;
    assert.ok(watch);
    return watch;
  }

  /** Sends a bookmark and waits until it has arrived. */
  async bookmark(version?: number): Promise<void> {
    const before = this.contacts;
    this.watch.bookmark(version);
    await this.until(() => this.contacts > before);
  }

  takeChanges(): string[] {
    return this.changes.splice(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.informer.stop();
    await this.client[Symbol.asyncDispose]();
    await this.api[Symbol.asyncDispose]();
  }
}
