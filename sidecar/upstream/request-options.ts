// What every request to a server has in common: our name, what we can read, and no timeouts but our
// own. No Origin, since no web page asks; no accept-encoding, so that answers come as they are and
// size caps mean what they say.

import { USER_AGENT } from '#core/version.ts';

const ACCEPT: readonly string[] = [
  'accept',
  'application/json, text/event-stream',
  'user-agent',
  USER_AGENT,
];
const ACCEPT_AND_CONTENT: readonly string[] = [...ACCEPT, 'content-type', 'application/json'];

export interface RequestOptions {
  readonly method: 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: string[];
  readonly body: Buffer | string | null;
  readonly headersTimeout: 0;
  readonly bodyTimeout: 0;
}

export interface RequestContent {
  readonly method: 'POST' | 'DELETE';
  readonly headers: readonly string[];
  readonly body: Buffer | string | undefined;
}

/** Options of undici's dispatch and request. */
export function requestOptions(path: string, content: RequestContent): RequestOptions {
  const { method, headers, body } = content;
  return {
    method,
    path,
    headers: (body === undefined ? ACCEPT : ACCEPT_AND_CONTENT).concat(headers),
    body: body ?? null,
    headersTimeout: 0,
    bodyTimeout: 0,
  };
}
