// What callers of the API server client may ask for, and the part of it that informers need.

import type { Clock } from '#core/clock.ts';
import type { KubeConfigLoader } from './kube-config.ts';
import type { ApiResource, KubeObject } from './kube-object.ts';
import type { CallOptions, KubeClientMetrics } from './kube-transport.ts';
import type { WatchEvent } from './watch-stream.ts';

export interface KubeClientOptions {
  readonly loadConfig?: KubeConfigLoader;
  readonly clock?: Clock;
  readonly metrics?: KubeClientMetrics;
  readonly userAgent?: string;
  readonly queriesPerSecond?: number;
  readonly burst?: number;
  readonly random?: () => number;
}

export interface SelectOptions {
  /** Absent: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Only metadata is sent (PartialObjectMetadata). */
  readonly isMetadataOnly?: boolean;
}

export interface ListOptions extends SelectOptions, CallOptions {
  readonly pageSize?: number;
  /** The state exactly as it was at this version; the server answers 410 when it no longer has it. */
  readonly exactResourceVersion?: string;
}

export interface ListResult {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
}

export interface WatchOptions extends SelectOptions {
  readonly resourceVersion: string;
  readonly timeoutSeconds: number;
  readonly signal?: AbortSignal;
}

export interface WriteOptions extends CallOptions {
  /** Everything is checked, nothing is stored. */
  readonly isDryRun?: boolean;
  /** `Strict` refuses unknown fields instead of dropping them. */
  readonly fieldValidation?: 'Strict' | 'Warn' | 'Ignore';
  readonly subresource?: 'status';
}

export interface ApplyOptions extends Omit<WriteOptions, 'subresource'> {
  readonly fieldManager?: string;
  /** Default true: takes fields over from other managers. Only for objects and fields that are ours. */
  readonly isForced?: boolean;
}

export interface DeleteOptions extends CallOptions {
  /** Deletes only this very object, not one of the same name. */
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
}

/** What informers need. */
export interface KubeReader {
  list(resource: ApiResource, options?: ListOptions): Promise<ListResult>;
  watch(resource: ApiResource, options: WatchOptions): AsyncIterable<WatchEvent>;
}
