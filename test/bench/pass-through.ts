// The reference of the bench: the leanest pass-through that plain JavaScript gives, node:http in
// front and undici.dispatch behind, with no policy, no parsing and no log. Gates are ratios to it.
// It never retries, checks or rewrites anything but the hop-by-hop headers.
//
//   node pass-through.mjs --port PORT --upstream http://127.0.0.1:PORT
//
// The bench takes the types off before it runs this file, so that it starts as JavaScript does.

import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http';
import { parseArgs } from 'node:util';

import { Pool, type Dispatcher } from 'undici';

const { values } = parseArgs({
  options: { port: { type: 'string' }, upstream: { type: 'string' } },
});
const pool = new Pool(values.upstream ?? '', { connections: 256 });

class Forward implements Dispatcher.DispatchHandler {
  readonly response: ServerResponse;
  constructor(response: ServerResponse) {
    this.response = response;
  }
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.response.on('close', () => {
      if (!this.response.writableFinished) controller.abort(new Error('the client went away'));
    });
  }
  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: IncomingHttpHeaders,
  ): void {
    const kept: OutgoingHttpHeaders = {};
    for (const name in headers) if (!isHopByHop(name)) kept[name] = headers[name];
    this.response.writeHead(statusCode, kept);
  }
  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.response.write(chunk)) return;
    controller.pause();
    this.response.once('drain', () => controller.resume());
  }
  onResponseEnd(): void {
    this.response.end();
  }
  onResponseError(): void {
    if (this.response.headersSent) this.response.destroy();
    else this.response.writeHead(502).end();
  }
}

function isHopByHop(name: string): boolean {
  return name === 'connection' || name === 'keep-alive' || name === 'transfer-encoding';
}

/** In undici's flat form; undici writes Host and Content-Length itself. */
function forwardedHeaders(raw: readonly string[]): string[] {
  const headers: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const lower = name.toLowerCase();
    if (lower !== 'host' && lower !== 'content-length' && !isHopByHop(lower))
      headers.push(name, raw[i + 1] ?? '');
  }
  return headers;
}

function forward(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body =
      chunks.length === 0 ? null : chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
    pool.dispatch(
      {
        path: request.url ?? '/',
        method: (request.method ?? 'GET') as Dispatcher.HttpMethod,
        headers: forwardedHeaders(request.rawHeaders),
        body: body ?? null,
      },
      new Forward(response),
    );
  });
}

createServer(forward).listen(Number(values.port), '127.0.0.1');
process.once('SIGTERM', () => process.exit(0));
