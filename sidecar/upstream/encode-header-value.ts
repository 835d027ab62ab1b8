// Values of mirrored headers (`Mcp-Name`, `Mcp-Param-*`) as MCP 2026-07-28 wants them
// (Streamable HTTP, "Value Encoding"): plain when every character may stand in a header, else the
// UTF-8 bytes in the Base64 sentinel form. What looks like the sentinel form is encoded too, so
// that no value can be read in two ways and none can end the header line.

const SENTINEL_PREFIX = '=?base64?';
const SENTINEL_SUFFIX = '?=';
const SPACE = 0x20;
const TILDE = 0x7e;

export function encodeHeaderValue(value: string): string {
  return isPlain(value)
    ? value
    : `${SENTINEL_PREFIX}${Buffer.from(value, 'utf8').toString('base64')}${SENTINEL_SUFFIX}`;
}

function isPlain(value: string): boolean {
  for (let index = 0; index < value.length; index++) {
    const code = value.charCodeAt(index);
    if (code < SPACE || code > TILDE) return false;
  }
  // Recipients trim white space at both ends.
  if (value.startsWith(' ') || value.endsWith(' ')) return false;
  return !(value.startsWith(SENTINEL_PREFIX) && value.endsWith(SENTINEL_SUFFIX));
}
