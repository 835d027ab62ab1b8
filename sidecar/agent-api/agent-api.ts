// Serves the HTTP requests of the pod's agents: guards, route, HTTP method, body, and then the
// message. Every request is answered exactly once and leaves exactly one record, refused ones
// too. Nothing that a caller claims about itself in headers goes on from here.

import type { IncomingMessage, ServerResponse } from 'node:http';

import type { Clock } from '#core/clock.ts';
import { FairleadError } from '#core/errors.ts';

import { stripCallerHeaders } from '#sidecar/admission/static-principal.ts';
import type { AuditLog } from '#sidecar/audit/audit-log.ts';
import { asFairleadError, errorStatus, renderRpcError, resultClassOf } from './answers.ts';
import { isModernVersion } from './classify-message.ts';
import type { Era, Principal, RequestId } from './exchange.ts';
import { allowedHosts, checkCaller, checkMediaTypes, routeOf } from './http-guards.ts';
import type { Route } from './http-guards.ts';
import type { HttpExchange } from './http-exchange.ts';
import { LiveSet } from '#core/live-set.ts';
import { MessageHandler } from './message-handler.ts';
import type { MessageHandlerOptions } from './message-handler.ts';
import { drainBody, isDeclaredTooLarge, readBody } from './read-body.ts';
import type { SessionStore } from './session-store.ts';

/** What the accepted configuration means for callers. */
export interface Admission {
  readonly principal: Principal;
  readonly configRevision: string;
  readonly maxRequestBytes: number;
}

/** One HTTP request on its way; becomes an exchange when its body is a JSON-RPC request. */
export interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly alias: string | undefined;
  readonly admission: Admission;
  exchange: HttpExchange | undefined;
  slot: number;
}

export interface Refusal {
  readonly era?: Era;
  readonly id?: RequestId | undefined;
  readonly method?: string | undefined;
  readonly requestBytes?: number;
}

export interface AgentApiOptions {
  readonly clock: Clock;
  readonly audit: AuditLog;
  readonly sessions: SessionStore;
  readonly relay: MessageHandlerOptions['relay'];
  readonly admission: () => Admission;
  /** The body of GET /status. */
  readonly statusPage: () => unknown;
  readonly onListenerFailed: (thrown: unknown) => void;
}

export class AgentApi {
  readonly #options: AgentApiOptions;
  readonly #messages: MessageHandler;
  readonly #visits = new LiveSet<Visit>();
  #hosts: ReadonlySet<string> = new Set();
  #lastRequestMs: number;

  constructor(options: AgentApiOptions) {
    this.#options = options;
    this.#lastRequestMs = options.clock.monotonicMs();
    this.#messages = new MessageHandler({
      ...options,
      refuse: (visit, error, refusal) => this.#refuse(visit, error, refusal),
    });
  }

  /** Requests that have begun and whose answer has not left yet. */
  get inFlight(): number {
    return this.#visits.size;
  }

  /** How long no request has begun or ended. */
  get idleMs(): number {
    return this.#visits.size > 0 ? 0 : this.#options.clock.monotonicMs() - this.#lastRequestMs;
  }

  get openStreams(): number {
    return this.#messages.keepAlive.size;
  }

  /** The Host values that callers of this port may send. */
  bindTo(port: number): void {
    this.#hosts = allowedHosts(port);
  }

  /** From now on new requests are refused; those in flight go on. */
  refuseNew(): void {
    this.#messages.refuseNew();
  }

  /** The drain's deadline: every open exchange gets its last answer. */
  interruptAll(): void {
    for (const visit of this.#visits.values()) this.#messages.interrupt(visit);
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const { headers } = request;
    const route = routeOf(request.url ?? '');
    const visit: Visit = {
      request,
      response,
      alias: route.kind === 'mcp' ? route.alias : undefined,
      admission: this.#options.admission(),
      exchange: undefined,
      slot: -1,
    };
    const fault = checkCaller(headers, this.#hosts) ?? this.#checkRoute(route);
    if (fault !== undefined) this.#refuse(visit, fault);
    else this.#serve(visit, route.kind);
  };

  /** A bug costs its own request an INTERNAL_ERROR, and never leaves it without an answer. */
  #serve(visit: Visit, kind: Route['kind']): void {
    const { method } = visit.request;
    try {
      if (kind === 'status') this.#serveStatus(visit);
      else if (method === 'POST') this.#servePost(visit);
      else if (method === 'DELETE') this.#serveDelete(visit);
      else this.#serveOther(visit);
    } catch (thrown) {
      this.#refuse(visit, asFairleadError(thrown));
    }
  }

  #checkRoute(route: Route): FairleadError | undefined {
    if (route.kind === 'none') return new FairleadError('NOT_FOUND');
    if (
      route.kind === 'status' ||
      route.alias === undefined ||
      this.#options.relay.hasAlias(route.alias)
    )
      return undefined;
    return new FairleadError('NOT_FOUND', {
      publicDetail: `No server has the alias ${JSON.stringify(route.alias)}.`,
    });
  }

  #servePost(visit: Visit): void {
    const { request, response, admission } = visit;
    this.#visits.add(visit);
    response.on('close', () => this.#leave(visit));
    stripCallerHeaders(request.headers);
    const fault = checkMediaTypes(request.headers['content-type'], request.headers.accept);
    if (fault !== undefined) {
      this.#refuse(visit, fault);
      return;
    }
    const refuseTooLarge = (): void => this.#refuse(visit, new FairleadError('REQUEST_TOO_LARGE'));
    if (isDeclaredTooLarge(request, admission.maxRequestBytes)) {
      refuseTooLarge();
      return;
    }
    if (request.headers.expect !== undefined) response.writeContinue();
    readBody(request, admission.maxRequestBytes, {
      onBody: (body) => this.#serveBody(visit, body),
      onTooLarge: refuseTooLarge,
    });
  }

  #serveBody(visit: Visit, body: Buffer): void {
    // The drain has answered already: its deadline came before the body was whole.
    if (visit.response.headersSent) return;
    try {
      this.#messages.serve(visit, body);
    } catch (thrown) {
      this.#refuse(visit, asFairleadError(thrown), { requestBytes: body.length });
    }
  }

  #leave(visit: Visit): void {
    this.#visits.delete(visit);
    this.#lastRequestMs = this.#options.clock.monotonicMs();
    visit.exchange?.handleClosed();
  }

  /** Ends a legacy session; a modern client has none (R57). */
  #serveDelete(visit: Visit): void {
    const { sessions } = this.#options;
    const session = isModernVersion(header(visit, 'mcp-protocol-version'))
      ? notAllowed()
      : this.#messages.findSession(visit);
    if (session instanceof FairleadError) {
      this.#refuse(visit, session);
      return;
    }
    visit.response.writeHead(204).end();
    void sessions.close(session);
  }

  /** GET has no standalone stream here; who is not the session's owner learns nothing about it. */
  #serveOther(visit: Visit): void {
    const asksForSession =
      visit.request.method === 'GET' && header(visit, 'mcp-session-id') !== undefined;
    const isLegacy = !isModernVersion(header(visit, 'mcp-protocol-version'));
    const session = asksForSession && isLegacy ? this.#messages.findSession(visit) : undefined;
    this.#refuse(visit, session instanceof FairleadError ? session : notAllowed());
  }

  #serveStatus(visit: Visit): void {
    if (visit.request.method !== 'GET' && visit.request.method !== 'HEAD') {
      this.#refuse(
        visit,
        new FairleadError('METHOD_NOT_ALLOWED', { publicDetail: 'Status is read with GET.' }),
      );
      return;
    }
    const body = `${JSON.stringify(this.#options.statusPage(), null, 2)}\n`;
    visit.response.writeHead(200, [
      'Content-Type',
      'application/json',
      'Cache-Control',
      'no-store',
      'Content-Length',
      String(Buffer.byteLength(body)),
    ]);
    visit.response.end(body);
  }

  /** Answers a request that becomes no exchange, and records that. */
  #refuse(visit: Visit, error: FairleadError, refusal: Refusal = {}): void {
    const { request, response, admission } = visit;
    const { principal, configRevision } = admission;
    const { method = '', requestBytes = 0 } = refusal;
    const record = this.#options.audit.open({
      method,
      headers: request.headers,
      principal,
      configRevision,
      requestBytes,
    });
    record.resultClass = resultClassOf(error.code);
    record.errorCode = error.code;
    record.errorDetail = error.logDetail;
    if (!response.headersSent && !response.destroyed) {
      const body = renderRpcError(refusal.id, error, record.callId);
      record.responseBytes = Buffer.byteLength(body);
      response.writeHead(
        errorStatus({ era: refusal.era ?? 'modern' }, error),
        refusalHeaders(error, record.responseBytes),
      );
      response.end(request.method === 'HEAD' ? undefined : body);
    }
    record.finish();
    drainBody(request, this.#options.clock);
  }
}

function refusalHeaders(error: FairleadError, length: number): string[] {
  const headers = ['Content-Type', 'application/json', 'Content-Length', String(length)];
  if (error.code === 'METHOD_NOT_ALLOWED') headers.push('Allow', 'POST, DELETE');
  if (error.entry.httpStatus === 503) headers.push('Retry-After', '1');
  return headers;
}

function notAllowed(): FairleadError {
  return new FairleadError('METHOD_NOT_ALLOWED');
}

export function header(visit: Visit, name: string): string | undefined {
  const value = visit.request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
