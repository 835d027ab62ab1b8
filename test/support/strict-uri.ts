// A reader of absolute http and https URIs by the letter of RFC 3986, for comparison with the
// WHATWG parser: nothing is repaired, decoded or stripped. What it cannot read, it refuses.

export interface StrictUri {
  readonly scheme: string;
  readonly userInfo: string | undefined;
  /** As written, brackets included. */
  readonly host: string;
  readonly port: string | undefined;
  readonly path: string;
}

const UNRESERVED = "[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2}";
const AUTHORITY = new RegExp(
  `^(?:((?:${UNRESERVED}|:)*)@)?(\\[[0-9A-Fa-f:.]+\\]|(?:${UNRESERVED})*)(?::([0-9]*))?$`,
);
const PATH = new RegExp(`^(?:/(?:${UNRESERVED}|[:@])*)*$`);
const QUERY = `(?:${UNRESERVED}|[:@/?])*`;
const TAIL = new RegExp(`^(?:\\?${QUERY})?(?:#${QUERY})?$`);

export function readStrictUri(text: string): StrictUri | undefined {
  const [, scheme = '', authority = '', path = '', tail = ''] =
    /^(https?):\/\/([^/?#]*)([^?#]*)(.*)$/is.exec(text) ?? [];
  if (!PATH.test(path) || !TAIL.test(tail)) return undefined;
  const [, userInfo, host = '', port] = AUTHORITY.exec(authority) ?? [];
  return host === '' ? undefined : { scheme: scheme.toLowerCase(), userInfo, host, port, path };
}
