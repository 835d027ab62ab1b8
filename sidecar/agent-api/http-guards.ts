// What every HTTP request to the agent API must pass before its body is read: the Host names this
// listener, there is no Origin (DNS rebinding, web pages), the path is known, the media types fit.
// Pure: strings in, a verdict out.

import { FairleadError } from '#core/errors.ts';

export type Route =
  | { readonly kind: 'mcp'; readonly alias: string | undefined }
  | { readonly kind: 'status' }
  | { readonly kind: 'none' };

const MCP_ALL: Route = { kind: 'mcp', alias: undefined };
const ALIAS_PATH = /^\/servers\/([a-z0-9-]{1,24})\/mcp$/;

/** A query is ignored: clients add cache busters and their own session hints. */
export function routeOf(url: string): Route {
  if (url === '/mcp') return MCP_ALL;
  const question = url.indexOf('?');
  const path = question === -1 ? url : url.slice(0, question);
  if (path === '/mcp') return MCP_ALL;
  if (path === '/status') return { kind: 'status' };
  const alias = ALIAS_PATH.exec(path)?.[1];
  return alias === undefined ? { kind: 'none' } : { kind: 'mcp', alias };
}

/** The Host values that name a loopback listener on this port. */
export function allowedHosts(port: number): ReadonlySet<string> {
  const names = ['127.0.0.1', 'localhost', '[::1]'];
  return new Set(names.flatMap((name) => [name, `${name}:${port}`]));
}

export function checkCaller(
  headers: { readonly host?: string | undefined; readonly origin?: string | undefined },
  hosts: ReadonlySet<string>,
): FairleadError | undefined {
  const { host, origin } = headers;
  if (host === undefined || !(hosts.has(host) || hosts.has(host.toLowerCase()))) {
    return new FairleadError('HOST_REFUSED', {
      logDetail: `host ${JSON.stringify(host?.slice(0, 256) ?? null)}`,
    });
  }
  if (origin !== undefined)
    return new FairleadError('ORIGIN_REFUSED', {
      logDetail: `origin ${JSON.stringify(origin.slice(0, 256))}`,
    });
  return undefined;
}

const JSON_MEDIA_TYPE = /^application\/json[ \t]*(;|$)/i;

export function checkMediaTypes(
  contentType: string | undefined,
  accept: string | undefined,
): FairleadError | undefined {
  if (contentType !== 'application/json' && !JSON_MEDIA_TYPE.test(contentType ?? ''))
    return new FairleadError('UNSUPPORTED_MEDIA_TYPE');
  return acceptsAnAnswer(accept) ? undefined : new FairleadError('NOT_ACCEPTABLE');
}

/** Lenient: old clients send no Accept, or only one of the two types. */
function acceptsAnAnswer(accept: string | undefined): boolean {
  if (
    accept === undefined ||
    accept === 'application/json, text/event-stream' ||
    accept.trim() === ''
  )
    return true;
  return accept
    .toLowerCase()
    .split(',')
    .some((part) =>
      /^(\*\/\*|application\/(json|\*)|text\/(event-stream|\*))$/.test(
        part.split(';')[0]?.trim() ?? '',
      ),
    );
}
