// A loopback HTTPS API server with faults on order: what a real one does rarely, this one does when told.
// Kinds need no registration. Answers, versions and watches are those of FakeApiStore; tests of schemas,
// field ownership and admission belong on the real server.

import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { KubeConfigLoader } from '#operator/kube/kube-config.ts';
import { isRecord } from '#operator/kube/kube-error.ts';
import type { ApiResource, KubeObject } from '#operator/kube/kube-object.ts';
import {
  addressOf,
  parseBody,
  parsePath,
  readBody,
  sendFaultStatus,
  sendJson,
  sendStatus,
} from './fake-api-http.ts';
import type { Fault, PathTarget } from './fake-api-http.ts';
import { FakeApiStore, StatusError } from './fake-api-store.ts';
import type { StoreEvent } from './fake-api-store.ts';
import { createTestAuthority } from './test-certificates.ts';

export type { Fault } from './fake-api-http.ts';

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

export interface FaultMatch {
  readonly method?: string;
  readonly path?: RegExp;
  readonly isWatch?: boolean;
}

/** One open watch, seen from the server. */
export interface FakeWatch {
  readonly request: SeenRequest;
  readonly isOpen: boolean;
  send(raw: string | Uint8Array): void;
  bookmark(version?: number): void;
  end(): void;
  reset(): void;
}

interface QueuedFault {
  readonly match: FaultMatch;
  readonly fault: Fault;
  left: number;
}

export interface FakeApiServerOptions {
  /** Requests must carry one of these; default: any is good. */
  readonly acceptedTokens?: ReadonlySet<string>;
}

export class FakeApiServer implements AsyncDisposable {
  readonly store = new FakeApiStore();
  readonly requests: SeenRequest[] = [];
  readonly watches: FakeWatch[] = [];
  /** TLS connections made so far. */
  connections = 0;
  acceptedTokens: ReadonlySet<string> | undefined;
  readonly caPem: string;
  readonly #server;
  readonly #faults: QueuedFault[] = [];
  readonly #waiters = new Set<() => void>();

  private constructor(options: FakeApiServerOptions) {
    const authority = createTestAuthority();
    const { certPem, keyPem } = authority.issue({ names: ['127.0.0.1', 'localhost'] });
    this.caPem = authority.certPem;
    this.acceptedTokens = options.acceptedTokens;
    this.#server = createServer({ cert: certPem, key: keyPem, keepAliveTimeout: 120_000 });
    this.#server.on('secureConnection', () => (this.connections += 1));
    this.#server.on('request', (request, response) => void this.#serve(request, response));
  }

  static async start(options: FakeApiServerOptions = {}): Promise<FakeApiServer> {
    const fake = new FakeApiServer(options);
    await new Promise<void>((resolve) => fake.#server.listen(0, '127.0.0.1', resolve));
    return fake;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `https://127.0.0.1:${String(port)}`;
  }

  /** A configuration with a fixed token, or with a token file that client-node reads. */
  configLoader(
    auth: { readonly token?: string; readonly tokenFile?: string } = {},
  ): KubeConfigLoader {
    return async () => {
      const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js');
      const config = new KubeConfig();
      const { tokenFile, token = 'test-token' } = auth;
      config.loadFromClusterAndUser(
        {
          name: 'fake',
          server: this.url,
          caData: Buffer.from(this.caPem).toString('base64'),
          skipTLSVerify: false,
        },
        tokenFile === undefined
          ? { name: 'me', token }
          : { name: 'me', authProvider: { name: 'tokenFile', config: { tokenFile } } },
      );
      return config;
    };
  }

  /** The next `times` matching requests meet `fault`; faults queue in order. */
  failNext(match: FaultMatch, fault: Fault, times = 1): void {
    this.#faults.push({ match, fault, left: times });
  }

  clearFaults(): void {
    this.#faults.length = 0;
  }

  get openWatches(): readonly FakeWatch[] {
    return this.watches.filter((watch) => watch.isOpen);
  }

  /** Creates or replaces an object as if somebody else did. */
  put(resource: ApiResource, object: KubeObject): KubeObject {
    const address = addressOf(resource, object.metadata.name, object.metadata.namespace);
    const { resourceVersion: _version, ...metadata } = object.metadata;
    const exists = this.store
      .list(address.collection, address.namespace)
      .some((other) => other.metadata.name === address.name);
    return exists
      ? this.store.update(address, { ...object, metadata })
      : this.store.create(address, object);
  }

  remove(resource: ApiResource, name: string, namespace?: string): void {
    this.store.delete(addressOf(resource, name, namespace));
  }

  /** Resolves once `condition` holds; looked at after every request, event and end of a watch. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiters.add(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #wake(): void {
    const waiting = [...this.#waiters];
    this.#waiters.clear();
    for (const resolve of waiting) resolve();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'https://fake');
    const seen: SeenRequest = {
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body: parseBody(await readBody(request)),
    };
    this.requests.push(seen);
    const fault = this.#takeFault(seen);
    if (fault !== undefined) this.#misbehave(fault, seen, response);
    else this.#answer(seen, response);
    this.#wake();
  }

  #takeFault(seen: SeenRequest): Fault | undefined {
    const isWatch = seen.query.get('watch') === 'true';
    const queued = this.#faults.find(
      ({ match, left }) =>
        left > 0 &&
        (match.method === undefined || match.method === seen.method) &&
        (match.path === undefined || match.path.test(seen.path)) &&
        (match.isWatch === undefined || match.isWatch === isWatch),
    );
    if (queued !== undefined) queued.left -= 1;
    return queued?.fault;
  }

  #misbehave(fault: Fault, seen: SeenRequest, response: ServerResponse): void {
    switch (fault.kind) {
      case 'hang':
        return;
      case 'reset':
        response.socket?.destroy();
        return;
      case 'act-and-reset':
        this.#handle(seen);
        response.socket?.destroy();
        return;
      case 'status':
        sendFaultStatus(fault, response);
        return;
      case 'raw':
        this.#sendRaw(fault, seen, response);
        return;
    }
    fault satisfies never;
  }

  #sendRaw(
    fault: Extract<Fault, { kind: 'raw' }>,
    seen: SeenRequest,
    response: ServerResponse,
  ): void {
    const watch = this.#openWatch(seen, response);
    for (const chunk of fault.chunks) response.write(chunk);
    if (fault.afterwards === 'end') watch.end();
    // Lets the bytes leave before the connection does.
    if (fault.afterwards === 'reset') response.write(' ', () => setImmediate(() => watch.reset()));
  }

  #answer(seen: SeenRequest, response: ServerResponse): void {
    try {
      this.#authenticate(seen);
      if (seen.query.get('watch') === 'true') this.#serveWatch(seen, response);
      else sendJson(response, seen.method === 'POST' ? 201 : 200, this.#handle(seen));
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      sendStatus(response, error);
    }
  }

  #authenticate(seen: SeenRequest): void {
    if (this.acceptedTokens === undefined) return;
    const token = seen.headers.authorization?.replace(/^Bearer /, '') ?? '';
    if (!this.acceptedTokens.has(token)) throw new StatusError(401, 'Unauthorized');
  }

  #handle(seen: SeenRequest): unknown {
    const target = parsePath(seen.path);
    const body = isRecord(seen.body) ? seen.body : {};
    if (target.name === undefined) {
      if (seen.method === 'GET') return this.#list(seen, target);
      const object = seen.body as KubeObject;
      return this.store.create({ ...target, name: object.metadata.name }, object);
    }
    const address = { ...target, name: target.name };
    switch (seen.method) {
      case 'GET':
        return this.store.get(address);
      case 'PUT':
        return this.store.update(address, seen.body as KubeObject, target.subresource);
      case 'PATCH':
        return this.#patch(seen, address, target.subresource);
      case 'DELETE':
        this.store.delete(address, isRecord(body['preconditions']) ? body['preconditions'] : {});
        return { kind: 'Status', apiVersion: 'v1', status: 'Success' };
      default:
        throw new StatusError(405, 'MethodNotAllowed');
    }
  }

  #patch(
    seen: SeenRequest,
    address: { collection: string; namespace: string | undefined; name: string },
    subresource: string | undefined,
  ): KubeObject {
    const body = isRecord(seen.body) ? seen.body : {};
    const isApply = seen.headers['content-type'] === 'application/apply-patch+yaml';
    const exists = this.store
      .list(address.collection, address.namespace)
      .some((object) => object.metadata.name === address.name);
    if (isApply && !exists && subresource === undefined)
      return this.store.create(address, seen.body as KubeObject);
    return this.store.patch(address, body, subresource);
  }

  #list(seen: SeenRequest, target: PathTarget): unknown {
    const all = this.store.list(target.collection, target.namespace);
    const start = Number(seen.query.get('continue') ?? '0');
    const limit = Number(seen.query.get('limit') ?? String(all.length));
    const isLast = start + limit >= all.length;
    const metadata = {
      resourceVersion: String(this.store.version),
      ...(isLast ? {} : { continue: String(start + limit) }),
    };
    return { kind: 'List', apiVersion: 'v1', metadata, items: all.slice(start, start + limit) };
  }

  #serveWatch(seen: SeenRequest, response: ServerResponse): void {
    const { collection, namespace } = parsePath(seen.path);
    const missed = this.store.eventsAfter(
      collection,
      Number(seen.query.get('resourceVersion') ?? '0'),
    );
    const watch = this.#openWatch(seen, response);
    const send = (event: StoreEvent): void => {
      if (event.collection !== collection) return;
      if (namespace !== undefined && event.object.metadata.namespace !== namespace) return;
      watch.send(`${JSON.stringify({ type: event.type, object: event.object })}\n`);
    };
    for (const event of missed) send(event);
    const stop = this.store.onEvent(send);
    response.once('close', stop);
  }

  #openWatch(seen: SeenRequest, response: ServerResponse): FakeWatch {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const bookmark = (version = this.store.version): void => {
      const object = {
        kind: 'Bookmark',
        apiVersion: 'v1',
        metadata: { resourceVersion: String(version) },
      };
      response.write(`${JSON.stringify({ type: 'BOOKMARK', object })}\n`);
    };
    const watch: FakeWatch = {
      request: seen,
      get isOpen() {
        return !response.writableEnded && !response.destroyed;
      },
      send: (raw) => void response.write(raw),
      bookmark,
      end: () => void response.end(),
      reset: () => void response.socket?.destroy(),
    };
    this.watches.push(watch);
    response.once('close', () => this.#wake());
    return watch;
  }
}
