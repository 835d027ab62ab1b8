// The agent API on a real loopback port over a scripted relay, and a client for raw requests: the
// tests choose every header and see every byte of the answer.

import { Agent, request } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';

import { systemClock } from '#core/clock.ts';
import type { Clock } from '#core/clock.ts';
import { tenantId, userId } from '#core/identity/ids.ts';
import { createCanonicalLog } from '#core/telemetry/canonical-log.ts';
import { createFingerprinter } from '#core/telemetry/fingerprint.ts';
import type { FinishedCall } from '#core/telemetry/metrics.ts';
import { createSecretRegistry } from '#core/telemetry/redact.ts';
import { AgentApi } from '#sidecar/agent-api/agent-api.ts';
import type { Admission } from '#sidecar/agent-api/agent-api.ts';
import { openLoopbackListener } from '#sidecar/agent-api/loopback-listener.ts';
import type { LoopbackListener } from '#sidecar/agent-api/loopback-listener.ts';
import { SessionStore } from '#sidecar/agent-api/session-store.ts';
import { AuditLog } from '#sidecar/audit/audit-log.ts';

import { RelayDouble } from './relay-double.ts';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body; undefined when it is empty. */
  readonly json: {
    readonly id?: unknown;
    readonly result?: Record<string, unknown>;
    readonly error?: {
      readonly code: number;
      readonly message: string;
      readonly data?: Record<string, unknown>;
    };
  };
}

export interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  readonly host?: string;
}

export type Line = Readonly<Record<string, unknown>>;

/** Without what every line of the log begins and ends with. */
function lineOf(text: string): Line {
  const {
    time: _time,
    service: _service,
    version: _version,
    msg: _msg,
    ...line
  } = JSON.parse(text);
  return line;
}

export function admissionOf(user = 'ana@example.com', maxRequestBytes = 65_536): Admission {
  return {
    principal: { tenant: tenantId('acme'), user: userId(user), agent: 'default' },
    configRevision: 'c'.repeat(64),
    maxRequestBytes,
  };
}

export class AgentApiFixture {
  readonly relay: RelayDouble;
  readonly api: AgentApi;
  readonly sessions: SessionStore;
  /** The canonical lines, with their levels. */
  readonly lines: Line[] = [];
  readonly finished: FinishedCall[] = [];
  readonly faults: unknown[] = [];
  admission: Admission = admissionOf();
  readonly #listener: LoopbackListener;
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(parts: {
    relay: RelayDouble;
    api: AgentApi;
    sessions: SessionStore;
    listener: LoopbackListener;
  }) {
    this.relay = parts.relay;
    this.api = parts.api;
    this.sessions = parts.sessions;
    this.#listener = parts.listener;
  }

  static async open(clock: Clock = systemClock): Promise<AgentApiFixture> {
    const relay = new RelayDouble();
    const fixture: { current?: AgentApiFixture } = {};
    const noteFault = (thrown: unknown): void => void fixture.current?.faults.push(thrown);
    const sessions = new SessionStore({ clock, onCloseFailed: noteFault });
    const audit = new AuditLog({
      clock,
      log: createCanonicalLog({
        name: 'fairlead-sidecar',
        destination: { write: (line) => void fixture.current?.lines.push(lineOf(line)) },
        clock,
        secrets: createSecretRegistry(),
      }),
      fingerprinter: createFingerprinter(Buffer.alloc(32, 7)),
      metrics: {
        callStarted: () => {},
        callFinished: (call) => void fixture.current?.finished.push(call),
      },
    });
    const api = new AgentApi({
      clock,
      audit,
      sessions,
      relay,
      admission: () => fixture.current?.admission ?? admissionOf(),
      statusPage: () => ({ state: 'serving' }),
      onListenerFailed: noteFault,
    });
    const listener = await openLoopbackListener(0, api.handle);
    api.bindTo(listener.port);
    fixture.current = new AgentApiFixture({ relay, api, sessions, listener });
    return fixture.current;
  }

  get port(): number {
    return this.#listener.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    await this.sessions.closeAll();
    await this.#listener.close();
  }

  send(sent: Sent): Promise<Answer> {
    return sendHttp(this.port, sent, this.#agent);
  }

  /** A 2026-07-28 request with everything that it must have. */
  modern(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    sent: Sent & { readonly id?: unknown; readonly meta?: object } = {},
  ): Promise<Answer> {
    const message = modernMessage(method, params, sent);
    const name = typeof params.name === 'string' ? { 'Mcp-Name': params.name } : {};
    const headers = {
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...name,
      ...sent.headers,
    };
    return this.send({ ...sent, headers, body: message });
  }

  legacy(
    method: string,
    params: unknown,
    sent: Sent & { readonly id?: unknown; readonly session?: string } = {},
  ): Promise<Answer> {
    const session =
      sent.session === undefined
        ? {}
        : { 'Mcp-Session-Id': sent.session, 'MCP-Protocol-Version': '2025-11-25' };
    const id = method.startsWith('notifications/') ? {} : { id: sent.id ?? 1 };
    return this.send({
      ...sent,
      headers: { ...session, ...sent.headers },
      body: { jsonrpc: '2.0', ...id, method, params },
    });
  }

  /** The id of a new legacy session. */
  async openSession(sent: Sent = {}): Promise<string> {
    const answer = await this.legacy('initialize', initializeParams(), sent);
    return String(answer.headers['mcp-session-id']);
  }
}

export function initializeParams(
  protocolVersion = '2025-11-25',
): Readonly<Record<string, unknown>> {
  return { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
}

export function modernMessage(
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  { id = 1, meta = {} }: { readonly id?: unknown; readonly meta?: object } = {},
): object {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
    ...meta,
  };
  return { jsonrpc: '2.0', id, method, params: { ...params, _meta } };
}

export function sendHttp(port: number, sent: Sent, agent?: Agent): Promise<Answer> {
  const { method = 'POST', path = '/mcp', body, signal, host = '127.0.0.1' } = sent;
  const isText = typeof body === 'string' || body instanceof Uint8Array;
  const payload = body === undefined ? undefined : isText ? body : JSON.stringify(body);
  const defaults =
    payload === undefined
      ? {}
      : { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  // An empty value means: send this header not at all.
  const headers = Object.fromEntries(
    Object.entries({ ...defaults, ...sent.headers }).filter(([, value]) => value !== ''),
  );
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host,
        port,
        method,
        path,
        headers,
        ...(agent === undefined ? {} : { agent }),
        ...(signal === undefined ? {} : { signal }),
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            json: parse(text),
          });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(payload);
  });
}

function parse(text: string): Answer['json'] {
  try {
    return JSON.parse(text) as Answer['json'];
  } catch {
    return {};
  }
}
