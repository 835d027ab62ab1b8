// Tells people what happened to an object, as events.k8s.io/v1 Events. Equal events become one with a
// count, each object may cause only so many, and nothing that goes wrong here ever reaches the caller:
// an event is a courtesy. Callers must not put secrets or values of referred objects into notes.

import { randomBytes } from 'node:crypto';
import type { Logger } from '#core/telemetry/log.ts';
import type { Clock } from '#core/clock.ts';
import { errorFields } from './error-fields.ts';
import { isKubeError } from './kube-error.ts';
import type { KubeClient } from './kube-client.ts';
import { EVENTS, apiVersionOf } from './kube-object.ts';
import type { KubeObject } from './kube-object.ts';
import { microTime } from './micro-time.ts';

export interface EventInput {
  readonly regarding: KubeObject;
  readonly type: 'Normal' | 'Warning';
  /** A condition reason: CamelCase, at most 128 characters. */
  readonly reason: string;
  /** What was done or tried, CamelCase. */
  readonly action: string;
  readonly note: string;
}

export interface EventMetrics {
  /** `fairlead_events_total{outcome}` */
  event(outcome: 'written' | 'suppressed' | 'dropped'): void;
}

export interface EventRecorderOptions {
  readonly client: Pick<KubeClient, 'create' | 'mergePatch'>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'debug'>;
  /** `fairlead.dev/operator` */
  readonly controller: string;
  /** The pod's name. */
  readonly instance: string;
  readonly metrics?: EventMetrics;
}

interface Series {
  readonly name: string;
  readonly namespace: string;
  count: number;
  writtenCount: number;
  writtenAtMs: number;
  lastMs: number;
  lastWallMs: number;
}

/** client-go's numbers: 25 new events per object, then one in five minutes. */
const OBJECT_BURST = 25;
const OBJECT_REFILL_MS = 300_000;
/** An equal event within this time continues the series. */
const SERIES_MS = 360_000;
const SERIES_WRITE_MS = 60_000;
const MAX_REMEMBERED = 4_096;
const MAX_QUEUED = 1_000;
const MAX_NOTE = 1_024;

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #series = new Map<string, Series>();
  readonly #budgets = new Map<string, { tokens: number; atMs: number }>();
  readonly #queue: (() => Promise<unknown>)[] = [];
  #sending: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /** Returns at once; writing happens later or, when there is too much, not at all. */
  record(input: EventInput): void {
    if (this.#isClosed) return;
    const key = seriesKey(input);
    const series = this.#series.get(key);
    const nowMs = this.#options.clock.monotonicMs();
    if (series !== undefined && nowMs - series.lastMs < SERIES_MS) this.#repeat(key, series, input);
    else if (this.#takeToken(input.regarding)) this.#begin(key, input);
    else this.#options.metrics?.event('suppressed');
  }

  /** Waits for what is queued. Used before the lease is given back. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#sending;
  }

  #begin(key: string, input: EventInput): void {
    const { clock } = this.#options;
    const { name, namespace } = input.regarding.metadata;
    const wallMs = clock.nowMs();
    const nowMs = clock.monotonicMs();
    const series: Series = {
      name: `${name.slice(0, 220)}.${randomBytes(8).toString('hex')}`,
      namespace: namespace ?? 'default',
      count: 1,
      writtenCount: 1,
      writtenAtMs: nowMs,
      lastMs: nowMs,
      lastWallMs: wallMs,
    };
    remember(this.#series, key, series);
    this.#enqueue(() => this.#options.client.create(EVENTS, this.#render(series, input, wallMs)));
  }

  #repeat(key: string, series: Series, input: EventInput): void {
    const { clock } = this.#options;
    series.count += 1;
    series.lastMs = clock.monotonicMs();
    series.lastWallMs = clock.nowMs();
    remember(this.#series, key, series);
    if (series.lastMs - series.writtenAtMs < SERIES_WRITE_MS) {
      this.#options.metrics?.event('suppressed');
      return;
    }
    series.writtenAtMs = series.lastMs;
    series.writtenCount = series.count;
    this.#enqueue(() => this.#writeSeries(key, series, input));
  }

  async #writeSeries(key: string, series: Series, input: EventInput): Promise<void> {
    const { name, namespace } = series;
    try {
      await this.#options.client.mergePatch(
        { resource: EVENTS, name, namespace },
        { series: renderSeries(series) },
      );
    } catch (error) {
      if (!isKubeError(error, 'not-found')) throw error;
      // Events expire after an hour: start a new one.
      this.#series.delete(key);
      this.record(input);
    }
  }

  #render(series: Series, input: EventInput, wallMs: number): KubeObject {
    const { regarding } = input;
    const { name, namespace, uid, resourceVersion } = regarding.metadata;
    return {
      apiVersion: apiVersionOf(EVENTS),
      kind: EVENTS.kind,
      metadata: { name: series.name, namespace: series.namespace },
      eventTime: microTime(wallMs),
      reportingController: this.#options.controller,
      reportingInstance: this.#options.instance.slice(0, 128),
      action: input.action.slice(0, 128),
      reason: input.reason.slice(0, 128),
      type: input.type,
      note: input.note.slice(0, MAX_NOTE),
      regarding: {
        apiVersion: regarding.apiVersion,
        kind: regarding.kind,
        name,
        namespace,
        uid,
        resourceVersion,
      },
    };
  }

  #takeToken(regarding: KubeObject): boolean {
    const key = objectIdentity(regarding);
    const nowMs = this.#options.clock.monotonicMs();
    const before = this.#budgets.get(key) ?? { tokens: OBJECT_BURST, atMs: nowMs };
    const tokens = Math.min(OBJECT_BURST, before.tokens + (nowMs - before.atMs) / OBJECT_REFILL_MS);
    const isAllowed = tokens >= 1;
    remember(this.#budgets, key, { tokens: isAllowed ? tokens - 1 : tokens, atMs: nowMs });
    return isAllowed;
  }

  #enqueue(write: () => Promise<unknown>): void {
    if (this.#queue.length >= MAX_QUEUED) {
      this.#options.metrics?.event('dropped');
      return;
    }
    this.#queue.push(write);
    this.#sending ??= this.#drain().finally(() => {
      this.#sending = undefined;
    });
  }

  async #drain(): Promise<void> {
    for (let write = this.#queue.shift(); write !== undefined; write = this.#queue.shift()) {
      try {
        await write();
        this.#options.metrics?.event('written');
      } catch (error) {
        this.#options.metrics?.event('dropped');
        this.#options.log.debug(errorFields(error), 'an event could not be written');
      }
    }
  }
}

function seriesKey(input: EventInput): string {
  const { type, reason, action, note } = input;
  return JSON.stringify([objectIdentity(input.regarding), type, reason, action, note]);
}

function objectIdentity(object: KubeObject): string {
  const { uid, namespace, name } = object.metadata;
  return JSON.stringify([object.kind, namespace, name, uid]);
}

function renderSeries(series: Series): Record<string, unknown> {
  return { count: series.writtenCount, lastObservedTime: microTime(series.lastWallMs) };
}

/** Keeps a map at its size by dropping what was used longest ago. */
function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= MAX_REMEMBERED) return;
  const oldest = map.keys().next();
  if (oldest.done !== true) map.delete(oldest.value);
}
