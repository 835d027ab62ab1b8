// Keeps a local copy of one kind: a full list, then one watch, for ever, whatever the API server does.
// Handlers hear (old, new) and may only enqueue: what they throw is logged and goes no further.
// Deletes are never lost: a relist reports what vanished, and a new object under an old name is a delete
// and an add. It never writes, and it never has two watches open.

import type { Clock } from '#core/clock.ts';
import { errorFields } from '#operator/kube/error-fields.ts';
import { isKubeError } from '#operator/kube/kube-error.ts';
import type { KubeReader, SelectOptions } from '#operator/kube/kube-client-options.ts';
import { objectKey } from '#operator/kube/kube-object.ts';
import type { ApiResource, KubeObject } from '#operator/kube/kube-object.ts';
import type { WatchEvent } from '#operator/kube/watch-stream.ts';
import { Backoff } from './backoff.ts';
import { LocalCopy } from './local-copy.ts';
import type { ChangeHandler } from './local-copy.ts';
import type { Indexers } from './object-store.ts';
import { WatchGuard } from './watch-guard.ts';
import type { WatchLog } from './watch-log.ts';
import {
  FRESH_HISTORY,
  decideNextStep,
  safetyRelistDelayMs,
  silenceLimitMs,
  watchTimeoutSeconds,
} from './watch-policy.ts';
import type { NextStep, RelistReason, WatchEnd, WatchHistory } from './watch-policy.ts';

export { withoutManagedFields } from './local-copy.ts';
export type { ChangeContext, ChangeHandler } from './local-copy.ts';

export interface InformerMetrics {
  /** `fairlead_informer_last_contact_timestamp_seconds` */
  contact(wallMs: number): void;
  /** `fairlead_informer_relists_total` */
  relist(reason: RelistReason): void;
  /** `fairlead_informer_relist_drift_total`: differences that a healthy watch should have told. */
  drift(differences: number): void;
  /** `fairlead_informer_watches_total` */
  watchStarted(): void;
  /** `fairlead_informer_objects` */
  size(objects: number): void;
}

export interface InformerOptions<T extends KubeObject = KubeObject> extends SelectOptions {
  readonly client: KubeReader;
  readonly resource: ApiResource;
  readonly clock: Clock;
  readonly log: WatchLog;
  readonly metrics?: InformerMetrics;
  readonly random?: () => number;
  readonly indexers?: Indexers<T>;
  /**
   * Parses or slims each object before it is stored, keeping metadata.uid and metadata.resourceVersion.
   * An object for which it throws is left out and logged. `withoutManagedFields` fits most kinds.
   */
  readonly transform: (object: KubeObject) => T;
}

export class Informer<T extends KubeObject = KubeObject> implements AsyncDisposable {
  readonly #options: InformerOptions<T>;
  readonly #random: () => number;
  readonly #copy: LocalCopy<T>;
  readonly #backoff: Backoff;
  readonly #stopping = new AbortController();
  readonly #sync = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #hasSynced = false;
  #resourceVersion = '';
  #history: WatchHistory = FRESH_HISTORY;
  #hasSeenBookmarks = false;
  #safetyRelistAtMs = 0;
  #lastContactMs: number | undefined;

  constructor(options: InformerOptions<T>) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    const { resource, log, transform, indexers } = options;
    const onSize = (objects: number): void => options.metrics?.size(objects);
    this.#copy = new LocalCopy({ resource, log, transform, indexers, onSize });
    this.#backoff = new Backoff({ clock: options.clock, random: this.#random });
    // Whoever awaits `synced` hears of a stop; when nobody does, that is no unhandled rejection.
    this.#sync.promise.catch(() => undefined);
  }

  /** Resolves after the first full list; rejects when stopped before. */
  get synced(): Promise<void> {
    return this.#sync.promise;
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** Wall time of the last list, event or bookmark. */
  get lastContactMs(): number | undefined {
    return this.#lastContactMs;
  }

  get(key: string): T | undefined {
    return this.#copy.store.get(key);
  }

  list(): readonly T[] {
    return this.#copy.store.list();
  }

  listByIndex(name: string, value: string): readonly T[] {
    return this.#copy.store.listByIndex(name, value);
  }

  /** A handler that comes late hears of everything that is already there. Returns how to leave. */
  addHandler(handler: ChangeHandler<T>): () => void {
    return this.#copy.addHandler(handler);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends list, watch and waits; resolves when nothing is open any more. */
  async stop(): Promise<void> {
    const reason = new Error(`the informer of ${this.#options.resource.plural} was stopped`);
    this.#stopping.abort(reason);
    this.#sync.reject(reason);
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let relist: RelistReason | undefined = 'first';
    while (!signal.aborted) {
      const next: NextStep =
        relist === undefined ? await this.#watchStep() : await this.#listStep(relist);
      relist = next.relist;
      this.#history = next.history;
      await this.#wait(next.wait);
    }
  }

  async #wait(wait: NextStep['wait']): Promise<void> {
    if (wait === 'none') return;
    const backoffMs = this.#backoff.nextMs();
    const delayMs = wait === 'backoff' ? backoffMs : Math.max(wait, 1) * (1 + this.#random() * 0.2);
    await this.#options.clock.sleep(delayMs, this.#stopping.signal).catch(() => undefined);
  }

  async #listStep(reason: RelistReason): Promise<NextStep> {
    try {
      await (reason === 'safety' ? this.#safetyRelist() : this.#relist(reason));
      return { wait: 'none', history: this.#history };
    } catch (error) {
      this.#logFailure('list', error);
      const retryAfterMs = isKubeError(error) ? error.retryAfterMs : undefined;
      return { relist: reason, wait: retryAfterMs ?? 'backoff', history: this.#history };
    }
  }

  async #relist(reason: RelistReason): Promise<void> {
    const { client, resource, metrics, log } = this.#options;
    const { items, resourceVersion } = await client.list(resource, this.#listOptions());
    if (this.#stopping.signal.aborted) return;
    this.#copy.replace(items, !this.#hasSynced);
    this.#resourceVersion = resourceVersion;
    this.#touch();
    metrics?.relist(reason);
    log.debug({ resource: resource.plural, reason, objects: this.#copy.store.size }, 'listed');
    this.#safetyRelistAtMs = this.#options.clock.monotonicMs() + safetyRelistDelayMs(this.#random);
    if (this.#hasSynced) return;
    this.#hasSynced = true;
    this.#sync.resolve();
  }

  /**
   * Compares the copy with the server at the very version that the watch has reached: a difference is an
   * event that was lost although everything looked healthy. The watch goes on from the same version.
   */
  async #safetyRelist(): Promise<void> {
    const { client, resource, metrics, log } = this.#options;
    const exact = await client
      .list(resource, { ...this.#listOptions(), exactResourceVersion: this.#resourceVersion })
      .catch((error: unknown) => {
        if (isKubeError(error, 'expired', 'invalid')) return undefined;
        throw error;
      });
    if (exact === undefined) return this.#relist('safety');
    if (this.#stopping.signal.aborted) return;
    const differences = this.#copy.replace(exact.items, false);
    this.#touch();
    metrics?.relist('safety');
    metrics?.drift(differences);
    if (differences > 0)
      log.warn({ resource: resource.plural, differences }, 'the watch had lost events');
    this.#safetyRelistAtMs = this.#options.clock.monotonicMs() + safetyRelistDelayMs(this.#random);
  }

  #listOptions(): SelectOptions & { signal: AbortSignal; maxRetries: number } {
    return { ...this.#selectOptions(), signal: this.#stopping.signal, maxRetries: 0 };
  }

  #selectOptions(): SelectOptions {
    const { namespace, labelSelector, fieldSelector, isMetadataOnly } = this.#options;
    return {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(isMetadataOnly === undefined ? {} : { isMetadataOnly }),
    };
  }

  async #watchStep(): Promise<NextStep> {
    const end = await this.#watchOnce();
    if (end.kind === 'failed') this.#logFailure('watch', end.error);
    if (end.kind === 'stalled')
      this.#options.log.warn(
        { resource: this.#options.resource.plural },
        'the watch was silent for too long',
      );
    return decideNextStep(end, this.#history);
  }

  async #watchOnce(): Promise<WatchEnd> {
    const { client, resource, clock, metrics } = this.#options;
    const timeoutSeconds = watchTimeoutSeconds(this.#random);
    const startedAtMs = clock.monotonicMs();
    using guard = new WatchGuard({
      clock,
      parent: this.#stopping.signal,
      safetyRelistAtMs: this.#safetyRelistAtMs,
    });
    let eventCount = 0;
    try {
      guard.expectWithin(silenceLimitMs(timeoutSeconds, this.#hasSeenBookmarks));
      metrics?.watchStarted();
      const options = {
        ...this.#selectOptions(),
        resourceVersion: this.#resourceVersion,
        timeoutSeconds,
        signal: guard.signal,
      };
      for await (const event of client.watch(resource, options)) {
        if (guard.signal.aborted) break;
        eventCount += 1;
        this.#handle(event);
        guard.expectWithin(silenceLimitMs(timeoutSeconds, this.#hasSeenBookmarks));
      }
    } catch (error) {
      return guard.end ?? { kind: 'failed', error, eventCount };
    }
    return (
      guard.end ?? { kind: 'closed', eventCount, durationMs: clock.monotonicMs() - startedAtMs }
    );
  }

  #handle(event: WatchEvent): void {
    this.#touch();
    const { resourceVersion } = event.object.metadata;
    if (event.type === 'BOOKMARK') this.#hasSeenBookmarks = true;
    else if (event.type === 'DELETED') this.#copy.remove(objectKey(event.object));
    else this.#copy.put(event.object);
    if (resourceVersion !== undefined) this.#resourceVersion = resourceVersion;
  }

  #touch(): void {
    this.#lastContactMs = this.#options.clock.nowMs();
    this.#options.metrics?.contact(this.#lastContactMs);
  }

  #logFailure(what: 'list' | 'watch', error: unknown): void {
    if (this.#stopping.signal.aborted) return;
    this.#options.log.warn(
      { ...errorFields(error), resource: this.#options.resource.plural },
      `${what} failed`,
    );
  }
}
