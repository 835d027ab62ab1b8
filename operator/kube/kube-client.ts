// The operator's client for the API server: raw JSON in and out, so that no unknown field is lost, with
// server-side apply under one field manager. A write first asks the write gate (the leader lease).
// It caches nothing and decides nothing; informers and reconcilers do.

import { arch, platform } from 'node:os';

import { systemClock } from '#core/clock.ts';
import { VERSION } from '#core/version.ts';
import type {
  ApplyOptions,
  DeleteOptions,
  KubeClientOptions,
  KubeReader,
  ListOptions,
  ListResult,
  WatchOptions,
  WriteOptions,
} from './kube-client-options.ts';
import { kubeConfigLoader } from './kube-config.ts';
import { KubeConnection } from './kube-connection.ts';
import { isKubeError } from './kube-error.ts';
import { resourcePath } from './kube-object.ts';
import type { ApiResource, KubeObject, ObjectRef } from './kube-object.ts';
import { KubeTransport } from './kube-transport.ts';
import type { CallOptions, KubeRequest } from './kube-transport.ts';
import { notAnObject, parseListPage } from './list-page.ts';
import type { ListPage } from './list-page.ts';
import {
  acceptFor,
  named,
  namespacePart,
  pathOf,
  refOf,
  selectorQuery,
  writeQuery,
} from './request-parts.ts';
import { RequestLimiter } from './request-limiter.ts';
import { isKubeObject, readWatchEvents } from './watch-stream.ts';
import type { WatchEvent } from './watch-stream.ts';
import { OPEN_GATE } from './write-gate.ts';
import type { WriteGate } from './write-gate.ts';

export const FIELD_MANAGER = 'fairlead-operator';
const PAGE_SIZE = 500;

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
    return this.#apply(resource, object, options);
  }

  async applyStatus(
    resource: ApiResource,
    object: KubeObject,
    options: ApplyOptions = {},
  ): Promise<KubeObject> {
    return this.#apply(resource, object, { ...options, subresource: 'status' });
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
    options: ApplyOptions & Pick<WriteOptions, 'subresource'>,
  ): Promise<KubeObject> {
    const { fieldManager = FIELD_MANAGER, isForced = true, subresource } = options;
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
  ): Promise<ListPage> {
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
    return parseListPage(answer, `GET ${path}`);
  }
}
