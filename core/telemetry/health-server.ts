// Probes and metrics on the pod's address, for both programs: /livez, /readyz, /metrics, and nothing
// else; the agent API never listens here and nothing here ever listens for agents. No state changes
// and no secrets: whoever reaches the pod may read it.

import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { FairleadError } from '#core/errors.ts';

export interface RenderedMetrics {
  readonly contentType: string;
  readonly text: string;
}

export interface HealthOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Why the program is not ready; undefined when it is. */
  readonly notReadyReason: () => string | undefined;
  readonly metrics: () => Promise<RenderedMetrics>;
}

export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Throws PORT_IN_USE. */
export async function openHealthServer(options: HealthOptions): Promise<HealthServer> {
  const server = createServer((request, response) => void serve(request, response, options));
  await listen(server, options);
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  options: HealthOptions,
): Promise<void> {
  const page = await pageOf(request, options);
  response.writeHead(page.status, {
    'Content-Type': page.contentType ?? 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
  });
  response.end(request.method === 'HEAD' ? undefined : page.text);
}

interface Page {
  readonly status: number;
  readonly text: string;
  readonly contentType?: string;
}

async function pageOf(request: IncomingMessage, options: HealthOptions): Promise<Page> {
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return { status: 405, text: 'use GET\n' };
  switch (request.url?.split('?')[0]) {
    case '/livez':
      return { status: 200, text: 'ok\n' };
    case '/readyz': {
      const reason = options.notReadyReason();
      return reason === undefined
        ? { status: 200, text: 'ok\n' }
        : { status: 503, text: `${reason}\n` };
    }
    case '/metrics':
      return renderMetrics(options);
    default:
      return { status: 404, text: 'use /livez, /readyz or /metrics\n' };
  }
}

async function renderMetrics({ metrics }: HealthOptions): Promise<Page> {
  try {
    return { status: 200, ...(await metrics()) };
  } catch {
    return { status: 500, text: 'metrics could not be collected\n' };
  }
}

function listen(server: Server, { host, port }: HealthOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const isTaken = Reflect.get(error, 'code') === 'EADDRINUSE';
      reject(
        isTaken
          ? new FairleadError('PORT_IN_USE', {
              publicDetail: `${host}:${port} (health) is taken.`,
              cause: error,
            })
          : error,
      );
    });
    server.listen({ host, port }, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}
