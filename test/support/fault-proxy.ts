// A reverse proxy on loopback, plain http towards the operator and the API server's TLS behind it: each
// request goes through, or meets the fault that the test has set. It speaks as the identity of the
// kubeconfig that it was made from, and counts what the operator asked.

import { readFile, writeFile } from 'node:fs/promises';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';

import { systemClock } from '#core/clock.ts';

export type Fault =
  | { readonly kind: 'pass' }
  /** Refused with a status, before the API server hears of it. */
  | { readonly kind: 'status'; readonly status: number; readonly retryAfterSeconds?: number }
  /** The API server acts, and its answer comes late. */
  | { readonly kind: 'slow'; readonly delayMs: number }
  /** The API server acts, and its answer never comes: the connection ends. */
  | { readonly kind: 'swallow' }
  /** A watch that says at once that its version is gone. */
  | { readonly kind: 'gone-frame' };

export interface ProxiedRequest {
  readonly method: string;
  readonly url: string;
  readonly isWatch: boolean;
}

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
  users: { user: { 'client-certificate-data': string; 'client-key-data': string } }[];
}

const PASS: Fault = { kind: 'pass' };

export class FaultProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #agent: Agent;
  readonly #target: string;
  readonly #watches = new Set<ServerResponse>();
  readonly requests: ProxiedRequest[] = [];
  /** What happens to a request; the default lets everything through. */
  decide: (request: ProxiedRequest) => Fault = () => PASS;

  private constructor(target: string, agent: Agent) {
    this.#target = target;
    this.#agent = agent;
    const listener: RequestListener = (request, response) => void this.#serve(request, response);
    this.#server = createServer(listener);
  }

  static async start(kubeconfigPath: string): Promise<FaultProxy> {
    const config = JSON.parse(await readFile(kubeconfigPath, 'utf8')) as Kubeconfig;
    const { cluster } = config.clusters[0] ?? {};
    const { user } = config.users[0] ?? {};
    if (cluster === undefined || user === undefined) throw new TypeError('not a test kubeconfig');
    const decoded = (data: string): Buffer => Buffer.from(data, 'base64');
    const agent = new Agent({
      keepAlive: true,
      ca: decoded(cluster['certificate-authority-data']),
      cert: decoded(user['client-certificate-data']),
      key: decoded(user['client-key-data']),
    });
    const proxy = new FaultProxy(cluster.server, agent);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  /** A kubeconfig that leads here. */
  async writeKubeconfig(path: string): Promise<string> {
    const { port } = this.#server.address() as AddressInfo;
    const server = `http://127.0.0.1:${String(port)}`;
    const config = {
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'proxy' },
      // client-node refuses plain http unless TLS is said not to matter.
      clusters: [{ name: 'proxy', cluster: { server, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'proxy', user: {} }],
      contexts: [{ name: 'proxy', context: { cluster: 'proxy', user: 'proxy' } }],
    };
    await writeFile(path, JSON.stringify(config), { mode: 0o600 });
    return path;
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  /** Ends every watch as a broken connection does. */
  cutWatches(): void {
    for (const response of this.#watches) response.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    this.#agent.destroy();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    const asked = { method, url, isWatch: url.includes('watch=true') };
    this.requests.push(asked);
    const fault = this.decide(asked);
    switch (fault.kind) {
      case 'status':
        return answerStatus(response, fault);
      case 'gone-frame':
        return answerGone(response);
      case 'slow':
        await systemClock.sleep(fault.delayMs);
        return this.#forward(request, response, { asked, isSwallowed: false });
      case 'pass':
      case 'swallow':
        return this.#forward(request, response, { asked, isSwallowed: fault.kind === 'swallow' });
      default:
        return fault satisfies never;
    }
  }

  #forward(
    request: IncomingMessage,
    response: ServerResponse,
    { asked, isSwallowed }: { readonly asked: ProxiedRequest; readonly isSwallowed: boolean },
  ): void {
    const { host: _host, connection: _connection, ...headers } = request.headers;
    const options = { method: asked.method, headers, agent: this.#agent };
    const outer = httpsRequest(`${this.#target}${asked.url}`, options, (answer) => {
      if (isSwallowed) {
        answer.resume().once('close', () => response.destroy());
        return;
      }
      if (asked.isWatch) this.#watches.add(response);
      response.once('close', () => {
        this.#watches.delete(response);
        answer.destroy();
      });
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
      answer.once('error', () => response.destroy());
    });
    outer.once('error', () => response.destroy());
    response.once('close', () => outer.destroy());
    request.pipe(outer);
  }
}

function answerStatus(
  response: ServerResponse,
  { status, retryAfterSeconds }: Extract<Fault, { kind: 'status' }>,
): void {
  const retry = retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) };
  const reasons: Readonly<Record<number, string>> = { 410: 'Expired', 429: 'TooManyRequests' };
  response.writeHead(status, { 'Content-Type': 'application/json', ...retry });
  response.end(JSON.stringify(statusObject(status, reasons[status] ?? 'InternalError')));
}

function answerGone(response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.end(`${JSON.stringify({ type: 'ERROR', object: statusObject(410, 'Expired') })}\n`);
}

function statusObject(code: number, reason: string): Readonly<Record<string, unknown>> {
  return {
    ...{ apiVersion: 'v1', kind: 'Status', metadata: {}, status: 'Failure' },
    ...{ code, reason, message: 'a fault of the test' },
  };
}
