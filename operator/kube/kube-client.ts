// The operator's client for the API server: raw JSON in and out, so that no unknown field is lost, with
// server-side apply under one field manager. A write first asks the write gate (the leader lease).
// It caches nothing and decides nothing; informers and reconcilers do.

import { arch, platform } from 'node:os';
import { systemClock } from '#core/clock.ts';
import type { Clock } from '#core/clock.ts';
import { VERSION } from '#core/version.ts';
import { kubeConfigLoader } from './kube-config.ts';
import type { KubeConfigLoader } from './kube-config.ts';
import { KubeConnection } from './kube-connection.ts';
import { KubeError, isKubeError, isRecord } from './kube-error.ts';
import { apiVersionOf, resourcePath } from './kube-object.ts';
import type { ApiResource, KubeObject, ObjectRef } from './kube-object.ts';
import { KubeTransport } from './kube-transport.ts';
import type { CallOptions, KubeClientMetrics, KubeRequest } from './kube-transport.ts';
import { RequestLimiter } from './request-limiter.ts';
import { isKubeObject, readWatchEvents } from './watch-stream.ts';
import type { WatchEvent } from './watch-stream.ts';
import { OPEN_GATE } from './write-gate.ts';
import type { WriteGate } from './write-gate.ts';

export type { CallOptions, KubeClientMetrics } from './kube-transport.ts';

export const FIELD_MANAGER = 'fairlead-operator';
const PAGE_SIZE = 500;

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

export class KubeClient implements KubeReader, AsyncDisposable {
  readonly #connection: KubeConnection;
  readonly #transport: KubeTransport;
  readonly #gate: WriteGate;
  readonly #isUrgent: boolean;

  private constructor(parts: {
    connection: KubeConnection;
    transport: KubeTransport;
    gate: WriteGate;
    isUrgent: boolean;
  }) {
    this.#connection = parts.connection;
    this.#transport = parts.transport;
    this.#gate = parts.gate;
    this.#isUrgent = parts.isUrgent;
  }

  /** Reads the configuration; the first connection is made by the first call. */
  static async open(options: KubeClientOptions = {}): Promise<KubeClient> {
    const clock = options.clock ?? systemClock;
    const connection = await KubeConnection.open({
      loadConfig: options.loadConfig ?? kubeConfigLoader(),
      clock,
    });
    const { queriesPerSecond, burst } = options;
    const limits = {
      ...(queriesPerSecond === undefined ? {} : { queriesPerSecond }),
      ...(burst === undefined ? {} : { burst }),
    };
    const transport = new KubeTransport({
      connection,
      clock,
      limiter: new RequestLimiter({ clock, ...limits }),
      userAgent: options.userAgent ?? `fairlead-operator/${VERSION} (${platform()}/${arch()})`,
      random: options.random ?? Math.random,
      metrics: options.metrics,
    });
    return new KubeClient({ connection, transport, gate: OPEN_GATE, isUrgent: false });
  }

  /** The same client whose writes all ask `gate` first. */
  gatedBy(gate: WriteGate): KubeClient {
    return new KubeClient({
      connection: this.#connection,
      transport: this.#transport,
      gate,
      isUrgent: this.#isUrgent,
    });
  }

  /** The same client whose calls go in front of the rate limit's queue. For the leader lease only. */
  inFront(): KubeClient {
    return new KubeClient({
      connection: this.#connection,
      transport: this.#transport,
      gate: this.#gate,
      isUrgent: true,
    });
  }

  /** The namespace of the kubeconfig's context, or of the pod. */
  get namespace(): string {
    return this.#connection.namespace;
  }

  get serverUrl(): URL {
    return this.#connection.serverUrl;
  }

  async get(ref: ObjectRef, options: CallOptions = {}): Promise<KubeObject> {
    return this.#requestObject(ref.resource, { method: 'GET', path: pathOf(ref), options });
  }

  /** Like `get`, but an absent object is undefined. */
  async find(ref: ObjectRef, options: CallOptions = {}): Promise<KubeObject | undefined> {
    try {
      return await this.get(ref, options);
    } catch (error) {
      if (isKubeError(error, 'not-found')) return undefined;
      throw error;
    }
  }

  /** Any JSON that the API server serves, such as `/version` or `/openapi/v3/apis/…`. */
  async getJson(path: string, options: CallOptions = {}): Promise<unknown> {
    return this.#transport.requestJson({
      method: 'GET',
      path,
      options,
      gate: this.#gate,
      isUrgent: this.#isUrgent,
    });
  }

  /** All pages. Starts over once when the pages expire on the way. */
  async list(resource: ApiResource, options: ListOptions = {}): Promise<ListResult> {
    try {
      return await this.#listPages(resource, options);
    } catch (error) {
      if (options.exactResourceVersion !== undefined || !isKubeError(error, 'expired')) throw error;
      return this.#listPages(resource, options);
    }
  }

  async *watch(resource: ApiResource, options: WatchOptions): AsyncGenerator<WatchEvent> {
    const request: Omit<KubeRequest, 'gate'> = {
      method: 'GET',
      path: resourcePath(resource, namespacePart(resource, options.namespace)),
      query: {
        ...selectorQuery(options),
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion: options.resourceVersion,
        timeoutSeconds: String(options.timeoutSeconds),
      },
      accept: acceptFor('PartialObjectMetadata', options),
      options: {
        maxRetries: 0,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      },
    };
    const chunks = this.#transport.requestStream({ ...request, gate: this.#gate });
    for await (const event of readWatchEvents(chunks, `GET ${request.path}?watch=true`)) {
      yield { type: event.type, object: named(resource, event.object) };
    }
  }

  /** Server-side apply: sends only our fields and owns them. `object` needs apiVersion, kind and name. */
  async apply(
    resource: ApiResource,
    object: KubeObject,
    options: ApplyOptions = {},
  ): Promise<KubeObject> {
    return this.#apply(resource, object, options, undefined);
  }

  async applyStatus(
    resource: ApiResource,
    object: KubeObject,
    options: ApplyOptions = {},
  ): Promise<KubeObject> {
    return this.#apply(resource, object, options, 'status');
  }

  /** JSON merge patch. With `metadata.resourceVersion` in it, the server refuses a lost race. */
  async mergePatch(
    ref: ObjectRef,
    patch: Readonly<Record<string, unknown>>,
    options: WriteOptions = {},
  ): Promise<KubeObject> {
    const contentType = 'application/merge-patch+json';
    return this.#requestObject(ref.resource, {
      method: 'PATCH',
      path: pathOf(ref, options.subresource),
      query: { ...writeQuery(options), fieldManager: FIELD_MANAGER },
      body: patch,
      contentType,
      options,
    });
  }

  async create(
    resource: ApiResource,
    object: KubeObject,
    options: WriteOptions = {},
  ): Promise<KubeObject> {
    const path = resourcePath(resource, namespacePart(resource, object.metadata.namespace));
    const query = { ...writeQuery(options), fieldManager: FIELD_MANAGER };
    return this.#requestObject(resource, { method: 'POST', path, query, body: object, options });
  }

  /** Replaces the whole object; with `metadata.resourceVersion` a lost race is a conflict. */
  async update(
    resource: ApiResource,
    object: KubeObject,
    options: WriteOptions = {},
  ): Promise<KubeObject> {
    const path = pathOf(refOf(resource, object), options.subresource);
    const query = { ...writeQuery(options), fieldManager: FIELD_MANAGER };
    return this.#requestObject(resource, { method: 'PUT', path, query, body: object, options });
  }

  async delete(ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
    const { uid, resourceVersion, propagationPolicy } = options;
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid, resourceVersion },
      propagationPolicy,
    };
    await this.#transport.requestJson({
      method: 'DELETE',
      path: pathOf(ref),
      body,
      options,
      gate: this.#gate,
      isUrgent: this.#isUrgent,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close();
  }

  async #apply(
    resource: ApiResource,
    object: KubeObject,
    options: ApplyOptions,
    subresource: 'status' | undefined,
  ): Promise<KubeObject> {
    const { fieldManager = FIELD_MANAGER, isForced = true } = options;
    return this.#requestObject(resource, {
      method: 'PATCH',
      path: pathOf(refOf(resource, object), subresource),
      query: { ...writeQuery(options), fieldManager, force: String(isForced) },
      body: object,
      contentType: 'application/apply-patch+yaml',
      options,
    });
  }

  async #requestObject(
    resource: ApiResource,
    request: Omit<KubeRequest, 'gate' | 'isUrgent'>,
  ): Promise<KubeObject> {
    const answer = await this.#transport.requestJson({
      ...request,
      gate: this.#gate,
      isUrgent: this.#isUrgent,
    });
    if (!isKubeObject(answer)) throw notAnObject(`${request.method} ${request.path}`);
    return named(resource, answer);
  }

  async #listPages(resource: ApiResource, options: ListOptions): Promise<ListResult> {
    const items: KubeObject[] = [];
    let token: string | undefined;
    do {
      const page = await this.#listPage(resource, options, token);
      for (const item of page.items) items.push(named(resource, item));
      token = page.token;
      if (token === undefined) return { items, resourceVersion: page.resourceVersion };
    } while (true);
  }

  async #listPage(
    resource: ApiResource,
    options: ListOptions,
    token: string | undefined,
  ): Promise<Page> {
    const exact = token === undefined ? options.exactResourceVersion : undefined;
    const path = resourcePath(resource, namespacePart(resource, options.namespace));
    const answer = await this.#transport.requestJson({
      method: 'GET',
      path,
      query: {
        ...selectorQuery(options),
        limit: String(options.pageSize ?? PAGE_SIZE),
        continue: token,
        resourceVersion: exact,
        resourceVersionMatch: exact === undefined ? undefined : 'Exact',
      },
      accept: acceptFor('PartialObjectMetadataList', options),
      options,
      gate: this.#gate,
      isUrgent: this.#isUrgent,
    });
    return parsePage(answer, `GET ${path}`);
  }
}

interface Page {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
  readonly token: string | undefined;
}

function parsePage(answer: unknown, request: string): Page {
  const metadata =
    isRecord(answer) && isRecord(answer['metadata']) ? answer['metadata'] : undefined;
  const items = isRecord(answer) ? (answer['items'] ?? []) : undefined;
  if (metadata === undefined || !Array.isArray(items) || !items.every(isKubeObject))
    throw notAnObject(request);
  const { resourceVersion, continue: token } = metadata;
  if (typeof resourceVersion !== 'string') throw notAnObject(request);
  return {
    items,
    resourceVersion,
    token: typeof token === 'string' && token !== '' ? token : undefined,
  };
}

/** Items of typed lists come without kind, and metadata-only ones with another: all get their own back. */
function named(resource: ApiResource, object: KubeObject): KubeObject {
  const apiVersion = apiVersionOf(resource);
  if (object.kind === resource.kind && object.apiVersion === apiVersion) return object;
  return { ...object, apiVersion, kind: resource.kind };
}

function refOf(resource: ApiResource, object: KubeObject): ObjectRef {
  const { name, namespace } = object.metadata;
  return { resource, name, ...(namespace === undefined ? {} : { namespace }) };
}

function pathOf(ref: ObjectRef, subresource?: string): string {
  if (ref.resource.isNamespaced && ref.namespace === undefined)
    throw new TypeError(`${ref.resource.plural} needs a namespace`);
  return resourcePath(ref.resource, {
    ...namespacePart(ref.resource, ref.namespace),
    name: ref.name,
    ...(subresource === undefined ? {} : { subresource }),
  });
}

function namespacePart(
  resource: ApiResource,
  namespace: string | undefined,
): { namespace?: string } {
  return resource.isNamespaced && namespace !== undefined ? { namespace } : {};
}

function selectorQuery(options: SelectOptions): Record<string, string | undefined> {
  return { labelSelector: options.labelSelector, fieldSelector: options.fieldSelector };
}

function writeQuery(
  options: Omit<WriteOptions, 'subresource'>,
): Record<string, string | undefined> {
  return {
    dryRun: options.isDryRun === true ? 'All' : undefined,
    fieldValidation: options.fieldValidation,
  };
}

function acceptFor(metadataKind: string, options: SelectOptions): string {
  return options.isMetadataOnly === true
    ? `application/json;as=${metadataKind};g=meta.k8s.io;v=v1`
    : 'application/json';
}

function notAnObject(request: string): KubeError {
  return new KubeError('server', {
    message: `${request}: the answer is not a Kubernetes object`,
    outcome: 'unknown',
  });
}
