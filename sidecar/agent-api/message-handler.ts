// Takes one POSTed body to its answer: parse once, classify, find the session, make the exchange,
// hand it to the method. A handler that throws costs its own exchange an INTERNAL_ERROR and
// nobody else anything. Answers belong to exchanges: client-chosen ids are only echoed.

import { isAscii, isUtf8 } from 'node:buffer';

import type { Clock } from '#core/clock.ts';
import { FairleadError } from '#core/errors.ts';

import type { AuditLog } from '#sidecar/audit/audit-log.ts';
import type { Relay } from '#sidecar/relay/relay.ts';
import type { Refusal, Visit } from './agent-api.ts';
import type { AgentSession } from './agent-session.ts';
import { answerError, asFairleadError } from './answers.ts';
import { classifyMessage } from './classify-message.ts';
import type { Classified } from './classify-message.ts';
import { HttpExchange } from './http-exchange.ts';
import { negotiateLegacyVersion, serveInitialize, serveLegacy } from './legacy-methods.ts';
import { serveModern } from './modern-methods.ts';
import type { SessionStore } from './session-store.ts';
import { StreamKeepAlive } from './stream-keep-alive.ts';

export interface MessageHandlerOptions {
  readonly clock: Clock;
  readonly audit: AuditLog;
  readonly sessions: SessionStore;
  readonly relay: Relay;
  readonly onListenerFailed: (thrown: unknown) => void;
  readonly refuse: (visit: Visit, error: FairleadError, refusal?: Refusal) => void;
}

interface Content {
  readonly body: Buffer;
  readonly latin1Body: string | undefined;
}

type ClassifiedRequest = Extract<Classified, { kind: 'request' }>;
type ClassifiedNotification = Extract<Classified, { kind: 'notification' }>;

export class MessageHandler {
  readonly keepAlive: StreamKeepAlive;
  readonly #options: MessageHandlerOptions;
  #isRefusingNew = false;

  constructor(options: MessageHandlerOptions) {
    this.#options = options;
    this.keepAlive = new StreamKeepAlive(options.clock);
  }

  refuseNew(): void {
    this.#isRefusingNew = true;
  }

  serve(visit: Visit, body: Buffer): void {
    const { headers } = visit.request;
    const text = isAscii(body) ? body.toString('latin1') : undefined;
    const classified = classifyMessage(text === undefined ? parseBody(body) : parseText(text), {
      protocolVersion: single(headers['mcp-protocol-version']),
      method: single(headers['mcp-method']),
      name: single(headers['mcp-name']),
    });
    switch (classified.kind) {
      case 'request':
        this.#serveRequest(visit, classified, { body, latin1Body: text });
        return;
      case 'notification':
        this.#serveNotification(visit, classified);
        return;
      case 'response':
        // Nothing here asks agents for anything, so nothing waits for it; the session must be theirs.
        this.#accept(visit, this.findSession(visit));
        return;
      case 'refused':
        this.#options.refuse(visit, classified.error, { ...classified, requestBytes: body.length });
        return;
      default:
        classified satisfies never;
    }
  }

  /** The caller's session, or why there is none. */
  findSession(visit: Visit): AgentSession | FairleadError {
    const id = single(visit.request.headers['mcp-session-id']);
    if (id === undefined) return new FairleadError('SESSION_REQUIRED');
    const session = this.#options.sessions.find(id, visit.admission.principal, visit.alias);
    return session ?? new FairleadError('SESSION_NOT_FOUND');
  }

  /** The last answer of an exchange that the drain cannot wait for; then the relay lets go of it. */
  interrupt(visit: Visit): void {
    const { exchange } = visit;
    if (exchange === undefined) {
      if (!visit.response.headersSent) this.#options.refuse(visit, new FairleadError('DRAINING'));
      return;
    }
    // What went out and has no answer may have been done: only what was never sent is safe to repeat.
    answerError(
      exchange,
      new FairleadError(exchange.record.attempts > 0 ? 'OUTCOME_UNKNOWN' : 'DRAINING'),
    );
    exchange.interrupt();
    exchange.record.finish();
  }

  #serveRequest(visit: Visit, classified: ClassifiedRequest, content: Content): void {
    const session = this.#admit(visit, classified);
    if (session instanceof FairleadError) {
      const { era, request } = classified;
      const { id, method } = request;
      this.#options.refuse(visit, session, { era, id, method, requestBytes: content.body.length });
      return;
    }
    const { body, latin1Body } = content;
    this.#run(this.#openExchange(visit, classified, { body, latin1Body, session }));
  }

  /** The session that the request belongs to, if it needs one; or why it is not served. */
  #admit(
    visit: Visit,
    { era, request }: ClassifiedRequest,
  ): AgentSession | undefined | FairleadError {
    if (this.#isRefusingNew) return new FairleadError('DRAINING');
    if (era === 'modern' || request.method === 'initialize') return undefined;
    const session = this.findSession(visit);
    if (session instanceof FairleadError || session.inFlight.get(request.id) === undefined)
      return session;
    return new FairleadError('DUPLICATE_REQUEST_ID');
  }

  #openExchange(
    visit: Visit,
    classified: ClassifiedRequest,
    { body, latin1Body, session }: Content & { readonly session: AgentSession | undefined },
  ): HttpExchange {
    const { request, era } = classified;
    const { alias, admission, response } = visit;
    const { headers } = visit.request;
    const { principal, configRevision } = admission;
    const meta = request.params?._meta as Readonly<Record<string, unknown>> | undefined;
    const record = this.#options.audit.open({
      method: request.method,
      headers,
      meta,
      principal,
      configRevision,
      requestBytes: body.length,
    });
    const exchange = new HttpExchange({
      request,
      body,
      latin1Body,
      headers,
      response,
      era,
      protocolVersion: versionOf(classified, session),
      alias,
      principal,
      session,
      record,
      keepAlive: this.keepAlive,
      onListenerFailed: this.#options.onListenerFailed,
    });
    visit.exchange = exchange;
    if (session !== undefined) {
      record.sessionId = session.id;
      record.owner = exchange;
      session.inFlight.add(exchange);
    }
    return exchange;
  }

  #run(exchange: HttpExchange): void {
    const { relay, sessions } = this.#options;
    try {
      const outcome =
        exchange.era === 'modern'
          ? serveModern(exchange, relay)
          : exchange.request.method === 'initialize'
            ? serveInitialize(exchange, sessions)
            : serveLegacy(exchange, relay);
      if (outcome instanceof Promise)
        outcome.catch((thrown: unknown) => this.#fail(exchange, thrown));
    } catch (thrown) {
      this.#fail(exchange, thrown);
    }
  }

  #fail(exchange: HttpExchange, thrown: unknown): void {
    answerError(exchange, asFairleadError(thrown));
    exchange.record.finish();
  }

  #serveNotification(visit: Visit, notification: ClassifiedNotification): void {
    if (notification.era === 'modern') {
      this.#accept(visit, undefined);
      return;
    }
    const session = this.findSession(visit);
    const requestId = notification.params?.requestId;
    if (!(session instanceof FairleadError) && notification.method === 'notifications/cancelled') {
      if (typeof requestId === 'string' || typeof requestId === 'number')
        session.inFlight.get(requestId)?.cancelByAgent();
    }
    this.#accept(visit, session);
  }

  #accept(visit: Visit, session: AgentSession | FairleadError | undefined): void {
    if (session instanceof FairleadError) this.#options.refuse(visit, session, { era: 'legacy' });
    else visit.response.writeHead(202, ['Content-Length', '0']).end();
  }
}

function versionOf(
  classified: ClassifiedRequest,
  session: AgentSession | undefined,
): HttpExchange['protocolVersion'] {
  if (classified.era === 'modern') return classified.protocolVersion;
  return (
    session?.protocolVersion ??
    negotiateLegacyVersion(String(classified.request.params?.protocolVersion))
  );
}

/** Invalid UTF-8 is refused: what we would read and what we would forward must be the same text. */
function parseBody(body: Buffer): unknown {
  if (!isUtf8(body)) throw new FairleadError('PARSE_ERROR', { publicDetail: 'It is not UTF-8.' });
  return parseText(body.toString('utf8'));
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes the body: it goes nowhere.
    throw new FairleadError('PARSE_ERROR');
  }
}

/** Node joins repeated headers of these names, so that an array never comes; a joined value matches nothing. */
function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join(', ') : value;
}
