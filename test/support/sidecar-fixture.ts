// A whole sidecar in this process, on free ports, over fake MCP servers: the tests speak to its
// agent port as any agent would, and see its log lines.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { systemClock } from '#core/clock.ts';
import type { Clock } from '#core/clock.ts';
import type { ServerConfig, SidecarConfigBody } from '#core/config/sidecar-config.ts';
import { createCanonicalLog } from '#core/telemetry/canonical-log.ts';
import { createLogger } from '#core/telemetry/log.ts';
import { createSecretRegistry } from '#core/telemetry/redact.ts';
import { Sidecar } from '#sidecar/sidecar.ts';
import type { StatusPage } from '#sidecar/status/status-page.ts';
import { openUpstreams } from '#sidecar/upstreams.ts';

import { initializeParams, modernMessage, sendHttp, type Answer } from './agent-api-fixture.ts';
import { serverConfig, sidecarConfig, writePlainConfig } from './sidecar-config.ts';

type LogLine = Readonly<Record<string, unknown>>;

export interface CallOptions {
  readonly id?: string | number;
  readonly path?: string;
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface FixtureOptions {
  readonly clock?: Clock;
  readonly proxyClientDirectory?: string | undefined;
}

export class SidecarFixture implements AsyncDisposable {
  readonly sidecar: Sidecar;
  readonly directory: string;
  readonly #lines: LogLine[];

  private constructor(sidecar: Sidecar, directory: string, lines: LogLine[]) {
    this.sidecar = sidecar;
    this.directory = directory;
    this.#lines = lines;
  }

  static async open(
    servers: readonly ServerConfig[],
    edit: Partial<SidecarConfigBody> = {},
    { clock = systemClock, proxyClientDirectory }: FixtureOptions = {},
  ): Promise<SidecarFixture> {
    const directory = await mkdtemp(join(tmpdir(), 'fairlead-sidecar-'));
    await writePlainConfig(
      directory,
      sidecarConfig({ servers: [...servers], drain: { timeoutMs: 2_000 }, ...edit }).text,
    );
    const lines: LogLine[] = [];
    const destination = { write: (line: string) => void lines.push(JSON.parse(line) as LogLine) };
    const sidecar = new Sidecar({
      settings: {
        configDirectory: directory,
        stateDirectory: undefined,
        agentPort: 0,
        healthPort: 0,
        healthHost: '127.0.0.1',
        isDevelopment: true,
        isNativeSidecar: true,
        exitsWithParent: false,
        logLevel: 'debug',
        fingerprintKeyFile: undefined,
        proxyClientDirectory,
      },
      clock,
      log: createLogger({ name: 'test', level: 'debug', destination }),
      canonicalLog: createCanonicalLog({
        name: 'test',
        destination,
        clock,
        secrets: createSecretRegistry(),
      }),
      openUpstreams,
    });
    await sidecar.start();
    return new SidecarFixture(sidecar, directory, lines);
  }

  get port(): number {
    return this.sidecar.agentPort ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${String(this.port)}/mcp`;
  }

  /** Log lines with this event, oldest first. */
  lines(event: string): LogLine[] {
    return this.#lines.filter((line) => line['event'] === event);
  }

  allLines(): readonly LogLine[] {
    return this.#lines;
  }

  status(): StatusPage {
    return this.sidecar.status();
  }

  /** Writes a new configuration; resolves when the sidecar runs it. */
  async reconfigure(
    servers: readonly ServerConfig[],
    edit: Partial<SidecarConfigBody> = {},
  ): Promise<void> {
    const { revision, text } = sidecarConfig({
      servers: [...servers],
      drain: { timeoutMs: 2_000 },
      ...edit,
    });
    await writePlainConfig(this.directory, text);
    await until(() => this.status().config.runningRevision === revision);
  }

  modern(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    options: CallOptions = {},
  ): Promise<Answer> {
    const name = typeof params['name'] === 'string' ? { 'Mcp-Name': params['name'] } : {};
    const headers = {
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...name,
      ...options.headers,
    };
    const { id = 1, meta = {}, path, signal } = options;
    return sendHttp(this.port, {
      headers,
      body: modernMessage(method, params, { id, meta }),
      ...(path === undefined ? {} : { path }),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async openSession(path?: string): Promise<string> {
    const body = { jsonrpc: '2.0', id: 0, method: 'initialize', params: initializeParams() };
    const answer = await sendHttp(this.port, { body, ...(path === undefined ? {} : { path }) });
    return String(answer.headers['mcp-session-id']);
  }

  // oxlint-disable-next-line eslint/max-params -- reads like the request that it sends
  legacy(
    session: string,
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    options: CallOptions = {},
  ): Promise<Answer> {
    const headers = {
      'Mcp-Session-Id': session,
      'MCP-Protocol-Version': '2025-11-25',
      ...options.headers,
    };
    const id = method.startsWith('notifications/') ? {} : { id: options.id ?? 1 };
    const { path, signal, meta } = options;
    const body = {
      jsonrpc: '2.0',
      ...id,
      method,
      params: meta === undefined ? params : { ...params, _meta: meta },
    };
    return sendHttp(this.port, {
      headers,
      body,
      ...(path === undefined ? {} : { path }),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sidecar.drain();
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** A server of this configuration on a fake's port. */
export function serverAt(
  alias: string,
  port: number,
  edit: Partial<ServerConfig> = {},
): ServerConfig {
  return serverConfig(alias, port, edit);
}

/** Resolves when the condition holds; fails loudly when it never does. */
export async function until(condition: () => boolean, timeoutMs = 10_000): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + timeoutMs;
  while (!condition()) {
    if (systemClock.monotonicMs() > deadlineMs)
      throw new Error(`did not come true in ${String(timeoutMs)} ms: ${String(condition)}`);
    await systemClock.sleep(10);
  }
}

/** The JSON-RPC messages of an event stream's text. */
export function eventsOf(text: string): Record<string, unknown>[] {
  return text
    .split('\n\n')
    .flatMap((event) => event.split('\n').filter((line) => line.startsWith('data: ')))
    .map((line) => JSON.parse(line.slice('data: '.length)) as Record<string, unknown>);
}

/** Names in the answer to tools/list, in its order. */
export function toolNames(answer: Answer): string[] {
  const tools = answer.json.result?.['tools'];
  assert.ok(Array.isArray(tools), answer.text);
  return tools.map((tool: { readonly name: string }) => tool.name);
}
