// A scriptable MCP server on a real loopback socket, for both protocol eras. It behaves by the
// specification until a script says otherwise: `intercept` replaces the answer to any request,
// `onCall` answers tools/call. It records what it received and who hung up. Not a model of any one
// SDK: tests that depend on a real server's habits run against the SDKs instead.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

import { describeCall, echo } from './fake-mcp-call.ts';
import type { CallContext, FakeCall } from './fake-mcp-call.ts';
import {
  eraOf,
  headerFault,
  metaOf,
  play,
  record,
  rpcError,
  sendJson,
  sseEvent,
} from './fake-mcp-wire.ts';
import type { FakeMessage, FakeReply, RecordedRequest } from './fake-mcp-wire.ts';

export type { FakeCall } from './fake-mcp-call.ts';
export { rpcError, sseEvent } from './fake-mcp-wire.ts';
export type { FakeMessage, FakeReply, RecordedRequest } from './fake-mcp-wire.ts';

export type FakeEra = 'legacy' | 'modern' | 'both';

export interface FakeTool {
  readonly name: string;
  readonly [member: string]: unknown;
}

export interface FakeMcpServerOptions {
  readonly era?: FakeEra;
  /** Tool definitions; a missing inputSchema becomes an empty object schema. */
  readonly tools?: readonly FakeTool[];
  readonly path?: string;
  /** A free one when absent. */
  readonly port?: number;
  /** Tools per page of tools/list; all on one page by default. */
  readonly pageSize?: number;
  /** Answers to requests as one JSON body (default) or as an event stream. */
  readonly answers?: 'json' | 'sse';
  /** Whether legacy initialize mints a session id and later requests must carry it (default true). */
  readonly sessions?: boolean;
  readonly legacyVersions?: readonly string[];
  readonly modernVersions?: readonly string[];
  readonly capabilities?: Readonly<Record<string, unknown>>;
  /** Extra members of modern tools/list results, e.g. `{ttlMs, cacheScope}`. */
  readonly listExtras?: Readonly<Record<string, unknown>>;
  readonly onCall?: (call: FakeCall) => unknown;
  readonly tls?: { readonly key: string; readonly cert: string };
}

/** Thrown by `onCall` to answer with a JSON-RPC error. */
export class FakeRpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  readonly httpStatus: number;
  constructor(
    code: number,
    message: string,
    more: { readonly data?: unknown; readonly httpStatus?: number } = {},
  ) {
    super(message);
    this.code = code;
    this.data = more.data;
    this.httpStatus = more.httpStatus ?? 200;
  }
}

export type Interceptor = (request: RecordedRequest) => FakeReply | undefined;

const META = 'io.modelcontextprotocol/';

export class FakeMcpServer {
  readonly requests: RecordedRequest[] = [];
  /** Requests whose client hung up before the answer was complete. */
  readonly disconnected: RecordedRequest[] = [];
  readonly sessions = new Set<string>();
  readonly serverInfo = { name: 'fake-mcp-server', version: '1.0.0' } as const;
  tools: readonly FakeTool[];
  /** Connections accepted since the start. */
  connectionCount = 0;
  openSockets = 0;
  readonly #options: FakeMcpServerOptions;
  readonly #server: Server;
  readonly #interceptors: Interceptor[] = [];
  readonly #watchers = new Set<() => void>();
  readonly #calls = new Map<string, AbortController>();

  private constructor(options: FakeMcpServerOptions) {
    this.#options = options;
    this.tools = options.tools ?? [{ name: 'echo', description: 'Gives back its arguments.' }];
    const listener = (request: IncomingMessage, response: ServerResponse): void => {
      this.#receive(request, response).catch((error: unknown) => response.destroy(error as Error));
    };
    this.#server =
      options.tls === undefined
        ? createServer(listener)
        : createTlsServer({ ...options.tls }, listener);
    this.#server.on('connection', (socket) => {
      this.connectionCount += 1;
      this.openSockets += 1;
      socket.once('close', () => {
        this.openSockets -= 1;
      });
    });
  }

  static async start(options: FakeMcpServerOptions = {}): Promise<FakeMcpServer> {
    const fake = new FakeMcpServer(options);
    fake.#server.listen(options.port ?? 0, '127.0.0.1');
    await once(fake.#server, 'listening');
    return fake;
  }

  get path(): string {
    return this.#options.path ?? '/mcp';
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get origin(): string {
    return `${this.#options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${this.port}`;
  }

  get url(): string {
    return `${this.origin}${this.path}`;
  }

  /** The recorded requests with this JSON-RPC method. */
  received(method: string): readonly RecordedRequest[] {
    return this.requests.filter((request) => request.message?.method === method);
  }

  /** Replaces answers: the newest interceptor that returns a reply wins. Returns its removal. */
  intercept(interceptor: Interceptor): () => void {
    this.#interceptors.unshift(interceptor);
    return () => {
      const index = this.#interceptors.indexOf(interceptor);
      if (index !== -1) this.#interceptors.splice(index, 1);
    };
  }

  /** Answers every request with this JSON-RPC method by `reply`. */
  replyTo(method: string, reply: FakeReply): () => void {
    return this.intercept((request) => (request.message?.method === method ? reply : undefined));
  }

  /** Resolves with the first recorded request, past or future, that matches. */
  waitForRequest(matches: (request: RecordedRequest) => boolean): Promise<RecordedRequest> {
    return this.#waitFor(() => this.requests.find(matches));
  }

  waitForDisconnect(
    matches: (request: RecordedRequest) => boolean = () => true,
  ): Promise<RecordedRequest> {
    return this.#waitFor(() => this.disconnected.find(matches));
  }

  /** As after a restart: every session id is unknown from now on. */
  forgetSessions(): void {
    this.sessions.clear();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #waitFor<Found>(find: () => Found | undefined): Promise<Found> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = find();
        if (found === undefined) return;
        this.#watchers.delete(look);
        resolve(found);
      };
      this.#watchers.add(look);
      look();
    });
  }

  #notify(): void {
    for (const look of [...this.#watchers]) look();
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const recorded = await record(request);
    response.on('close', () => {
      if (response.writableFinished) return;
      this.disconnected.push(recorded);
      this.#notify();
    });
    this.requests.push(recorded);
    this.#notify();
    for (const interceptor of this.#interceptors) {
      const reply = interceptor(recorded);
      if (reply !== undefined) return play(reply, response);
    }
    return this.#serve(recorded, response);
  }

  async #serve(request: RecordedRequest, response: ServerResponse): Promise<void> {
    if (request.path !== this.path) return sendJson(response, 404, { error: 'no such path' });
    if (request.httpMethod === 'DELETE') return this.#deleteSession(request, response);
    if (request.httpMethod !== 'POST')
      return sendJson(response, 405, rpcError(undefined, -32000, 'Method not allowed'));
    const message = request.message;
    if (message === undefined)
      return sendJson(response, 400, rpcError(undefined, -32700, 'Parse error'));
    const era = eraOf(message);
    const served = this.#options.era ?? 'both';
    if (era === 'modern' && served !== 'legacy')
      return this.#serveModern(request, message, response);
    if (served !== 'modern') return this.#serveLegacy(request, message, response);
    const supported = this.#modernVersions();
    return sendJson(
      response,
      400,
      rpcError(message.id, -32022, {
        message: 'Unsupported protocol version',
        data: { supported, requested: message.params?.['protocolVersion'] },
      }),
    );
  }

  #deleteSession(request: RecordedRequest, response: ServerResponse): void {
    if (this.#options.era === 'modern')
      return sendJson(response, 405, rpcError(undefined, -32000, 'Method not allowed'));
    const known = this.sessions.delete(String(request.headers['mcp-session-id']));
    response.writeHead(known ? 200 : 404).end();
  }

  #modernVersions(): readonly string[] {
    return this.#options.modernVersions ?? ['2026-07-28'];
  }

  async #serveModern(
    request: RecordedRequest,
    message: FakeMessage,
    response: ServerResponse,
  ): Promise<void> {
    const meta = metaOf(message);
    const version = meta[`${META}protocolVersion`];
    const fault = headerFault(request, message, version);
    if (fault !== undefined) return sendJson(response, 400, rpcError(message.id, -32020, fault));
    const supported = this.#modernVersions();
    if (!supported.includes(String(version))) {
      return sendJson(
        response,
        400,
        rpcError(message.id, -32022, {
          message: 'Unsupported protocol version',
          data: { supported, requested: version },
        }),
      );
    }
    if (meta[`${META}clientCapabilities`] === undefined)
      return sendJson(response, 400, rpcError(message.id, -32602, 'Missing clientCapabilities'));
    const complete = { resultType: 'complete', _meta: { [`${META}serverInfo`]: this.serverInfo } };
    switch (message.method) {
      case 'server/discover': {
        const capabilities = this.#options.capabilities ?? { tools: {} };
        return this.#result(
          message,
          {
            ...complete,
            supportedVersions: supported,
            capabilities,
            ttlMs: 60_000,
            cacheScope: 'public',
          },
          response,
        );
      }
      case 'tools/list':
        return this.#result(
          message,
          {
            ...complete,
            ttlMs: 60_000,
            cacheScope: 'private',
            ...this.#page(message),
            ...this.#options.listExtras,
          },
          response,
        );
      case 'tools/call':
        return this.#call({ request, message, era: 'modern', envelope: complete }, response);
      default:
        return sendJson(response, 404, rpcError(message.id, -32601, 'Method not found'));
    }
  }

  async #serveLegacy(
    request: RecordedRequest,
    message: FakeMessage,
    response: ServerResponse,
  ): Promise<void> {
    if (message.method === 'initialize') return this.#initialize(message, response);
    const session = request.headers['mcp-session-id'];
    if (this.#options.sessions !== false) {
      if (session === undefined)
        return sendJson(
          response,
          400,
          rpcError(undefined, -32000, 'Bad Request: Mcp-Session-Id header is required'),
        );
      if (!this.sessions.has(String(session)))
        return sendJson(response, 404, rpcError(undefined, -32001, 'Session not found'));
    }
    if (message.id === undefined || message.method === undefined)
      return this.#notified(message, response);
    switch (message.method) {
      case 'ping':
        return this.#result(message, {}, response);
      case 'tools/list':
        return this.#result(message, this.#page(message), response);
      case 'tools/call':
        return this.#call({ request, message, era: 'legacy', envelope: {} }, response);
      default:
        return this.#answer(rpcError(message.id, -32601, 'Method not found'), response);
    }
  }

  #initialize(message: FakeMessage, response: ServerResponse): void {
    const versions = this.#options.legacyVersions ?? ['2025-11-25', '2025-06-18', '2025-03-26'];
    const requested = String(message.params?.['protocolVersion']);
    const protocolVersion = versions.includes(requested) ? requested : versions[0];
    if (this.#options.sessions !== false) {
      const session = randomUUID();
      this.sessions.add(session);
      response.setHeader('mcp-session-id', session);
    }
    const capabilities = this.#options.capabilities ?? { tools: {} };
    this.#result(message, { protocolVersion, capabilities, serverInfo: this.serverInfo }, response);
  }

  #notified(message: FakeMessage, response: ServerResponse): void {
    if (message.method === 'notifications/cancelled')
      this.#calls.get(JSON.stringify(message.params?.['requestId']))?.abort();
    response.writeHead(202).end();
  }

  #page(message: FakeMessage): object {
    const size = this.#options.pageSize ?? Number.POSITIVE_INFINITY;
    const start = Number(message.params?.['cursor'] ?? 0);
    const tools = this.tools
      .slice(start, start + size)
      .map((tool) => ({ inputSchema: { type: 'object' }, ...tool }));
    const next = start + size;
    return next < this.tools.length ? { tools, nextCursor: String(next) } : { tools };
  }

  async #call(context: CallContext, response: ServerResponse): Promise<void> {
    const { message } = context;
    const id = message.id ?? 'none';
    const controller = new AbortController();
    this.#calls.set(JSON.stringify(id), controller);
    response.on('close', () => {
      if (!response.writableFinished) controller.abort();
    });
    const call = describeCall(context, response, controller.signal);
    try {
      const result = await (this.#options.onCall ?? echo)(call);
      this.#answer(
        { jsonrpc: '2.0', id, result: { ...context.envelope, ...(result as object) } },
        response,
      );
    } catch (error) {
      if (!(error instanceof FakeRpcError)) throw error;
      this.#answer(
        rpcError(
          id,
          error.code,
          error.data === undefined ? error.message : { message: error.message, data: error.data },
        ),
        response,
        error.httpStatus,
      );
    } finally {
      this.#calls.delete(JSON.stringify(id));
    }
  }

  #result(message: FakeMessage, result: object, response: ServerResponse): void {
    this.#answer({ jsonrpc: '2.0', id: message.id, result }, response);
  }

  #answer(body: object, response: ServerResponse, status = 200): void {
    if (response.destroyed) return;
    if (response.headersSent) {
      response.end(sseEvent(body));
    } else if (this.#options.answers === 'sse' && status === 200) {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
      response.end(sseEvent(body));
    } else {
      sendJson(response, status, body);
    }
  }
}
