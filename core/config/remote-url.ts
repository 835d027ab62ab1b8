// One check for every configured URL (endpoint, resource, redirect URI): the strict lower-case
// form that Go's and the WHATWG's parsers read alike. What two parsers read differently is an
// attack surface, so anything outside the pattern is refused rather than normalised.
// The same pattern and messages are compiled into the CRDs' CEL rules.

/** scheme://host[:port][/path]; lower-case host; no userinfo, query, fragment, percent-encoding. */
export const REMOTE_URL_PATTERN =
  "^https?://([a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*|\\[::1\\])(:[1-9][0-9]{0,4})?(/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*$";

const PATTERN = new RegExp(REMOTE_URL_PATTERN);
const LOOPBACK_LITERAL =
  /^(localhost|127(\.(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])){3}|\[::1\])$/;

export type RemoteUrlVerdict =
  | {
      readonly kind: 'ok';
      readonly host: string;
      readonly port: number;
      readonly protocol: 'http:' | 'https:';
    }
  | { readonly kind: 'bad'; readonly reason: RemoteUrlFault; readonly message: string };

export type RemoteUrlFault = 'form' | 'port' | 'dot-segments' | 'plain-http' | 'numeric-host';

export interface RemoteUrlRules {
  /** `fairlead dev`: plain http to a loopback literal with an explicit port is accepted. */
  readonly development: boolean;
}

export const REMOTE_URL_MESSAGES = {
  form: 'must be an absolute lower-case URL without user information, query, fragment or percent-encoding',
  port: 'must have a port from 1 to 65535',
  'dot-segments': 'must not contain "." or ".." path segments',
  'plain-http':
    'must use https (plain http is accepted only by "fairlead dev", with an explicit port on localhost or a loopback address)',
  'numeric-host':
    'must name a host, not a number or an address (loopback addresses are accepted only by "fairlead dev")',
} as const satisfies Record<RemoteUrlFault, string>;

/** `localhost`, 127.x.y.z or `[::1]`, as a URL's host has it. */
export function isLoopbackLiteral(host: string): boolean {
  return LOOPBACK_LITERAL.test(host);
}

function bad(reason: RemoteUrlFault): RemoteUrlVerdict {
  return { kind: 'bad', reason, message: REMOTE_URL_MESSAGES[reason] };
}

/** Judges a configured URL's form; whether its host is listed is the caller's next question. */
export function checkRemoteUrl(text: string, rules: RemoteUrlRules): RemoteUrlVerdict {
  if (text.length > 2048 || !PATTERN.test(text)) return bad('form');
  const { protocol, host, port, hasPort, path } = splitUrl(text);
  if (port > 65_535) return bad('port');
  if (path.split('/').some((segment) => segment === '.' || segment === '..')) {
    return bad('dot-segments');
  }
  const isDevelopmentUrl = rules.development && isLoopbackLiteral(host) && hasPort;
  if (protocol === 'http:' && !isDevelopmentUrl) return bad('plain-http');
  if (!isDevelopmentUrl && isNumericHost(host)) return bad('numeric-host');
  return isReadAlike(text, host, port) ? { kind: 'ok', host, port, protocol } : bad('form');
}

interface UrlParts {
  readonly protocol: 'http:' | 'https:';
  readonly host: string;
  readonly port: number;
  readonly hasPort: boolean;
  readonly path: string;
}

/** Splits a text that the pattern accepted. */
function splitUrl(text: string): UrlParts {
  const protocol = text.startsWith('https://') ? 'https:' : 'http:';
  const rest = text.slice(protocol.length + 2);
  const slash = rest.indexOf('/');
  const authority = slash === -1 ? rest : rest.slice(0, slash);
  const path = slash === -1 ? '' : rest.slice(slash);
  const portText = /:([0-9]+)$/.exec(authority.replace(/^\[[^\]]*\]/, ''))?.[1];
  if (portText === undefined) {
    return {
      protocol,
      host: authority,
      port: protocol === 'https:' ? 443 : 80,
      hasPort: false,
      path,
    };
  }
  const host = authority.slice(0, -(portText.length + 1));
  return { protocol, host, port: Number(portText), hasPort: true, path };
}

/** The last label decides how the WHATWG parser reads a host: all digits or 0x… is an IPv4 number. */
function isNumericHost(host: string): boolean {
  return host.startsWith('[') || /^([0-9]+|0x[0-9a-f]*)$/.test(host.split('.').at(-1) ?? '');
}

/**
 * The parser that will open the connection has the last word: it must never read another host, and
 * some versions refuse `xn--` labels that are not punycode, which no pattern can tell apart.
 */
function isReadAlike(text: string, host: string, port: number): boolean {
  const url = URL.parse(text);
  if (url === null) return false;
  const readPort = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  return url.hostname === host && readPort === port;
}
