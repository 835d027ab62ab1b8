// The HTTP side of the fake API server: paths, bodies, answers, and the faults that a test can order.

import type { IncomingMessage, ServerResponse } from 'node:http';

import { namespacedKey, resourcePath } from '#operator/kube/kube-object.ts';
import type { ApiResource } from '#operator/kube/kube-object.ts';
import { StatusError } from './fake-api-store.ts';

export type Fault =
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly reason?: string;
      readonly retryAfter?: string;
      readonly location?: string;
    }
  /** Accepts the request and never answers. */
  | { readonly kind: 'hang' }
  /** Closes the connection without an answer. */
  | { readonly kind: 'reset' }
  /** 200 and these bytes, then the end of the stream, or of the connection. */
  | {
      readonly kind: 'raw';
      readonly chunks: readonly (string | Uint8Array)[];
      readonly afterwards: 'end' | 'reset' | 'stay-open';
    }
  /** Handles it as usual, and loses the answer. */
  | { readonly kind: 'act-and-reset' };

export interface PathTarget {
  readonly collection: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

export function parsePath(path: string): PathTarget {
  const match =
    /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(
      path,
    );
  if (match === null) throw new StatusError(404, 'NotFound', `no such path: ${path}`);
  const [, root = '', namespace, plural = '', name, subresource] = match.map((part) =>
    part === undefined ? undefined : decodeURIComponent(part),
  );
  return { collection: `${root}/${plural}`, namespace, name, subresource };
}

export function addressOf(
  resource: ApiResource,
  name: string,
  namespace: string | undefined,
): { collection: string; namespace: string | undefined; name: string } {
  if (resource.isNamespaced && namespace === undefined)
    throw new TypeError(`${namespacedKey(name)} needs a namespace`);
  return { collection: resourcePath(resource), namespace, name };
}

export function sendFaultStatus(
  fault: Extract<Fault, { kind: 'status' }>,
  response: ServerResponse,
): void {
  if (fault.retryAfter !== undefined) response.setHeader('retry-after', fault.retryAfter);
  if (fault.location !== undefined) response.setHeader('location', fault.location);
  sendStatus(response, new StatusError(fault.status, fault.reason ?? '', 'as ordered by the test'));
}

export function sendStatus(response: ServerResponse, error: StatusError): void {
  const { code, reason, message } = error;
  sendJson(response, code, {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    reason,
    message,
  });
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

export function parseBody(text: string): unknown {
  return text === '' ? undefined : JSON.parse(text);
}
