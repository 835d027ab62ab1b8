// `x-mcp-header` (MCP 2026-07-28, Streamable HTTP, "Custom Headers from Tool Parameters"): finds
// the annotations of a tool's inputSchema, judges them, and reads the header values of one call.
// A schema that breaks a rule makes the whole tool unusable over HTTP; it never drops an
// annotation silently, since a server may route or authorize by the header.

import { encodeHeaderValue } from './encode-header-value.ts';
import type { ParamHeader } from './upstream-types.ts';

export type ParamHeaderScan =
  | { readonly kind: 'ok'; readonly headers: readonly ParamHeader[] }
  | { readonly kind: 'invalid'; readonly reason: string };

type Members = Readonly<Record<string, unknown>>;

const ANNOTATION = 'x-mcp-header';
const HEADER_PREFIX = 'Mcp-Param-';
/** RFC 9110 5.1: token. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
const PRIMITIVE_TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);
/** Values of these keywords are subschemas, or lists of them. */
const SCHEMA_KEYWORDS = [
  'items',
  'prefixItems',
  'contains',
  'additionalProperties',
  'unevaluatedProperties',
  'unevaluatedItems',
  'propertyNames',
  'oneOf',
  'anyOf',
  'allOf',
  'not',
  'if',
  'then',
  'else',
];
/** Values of these keywords map names to subschemas. */
const MAP_KEYWORDS = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];
const MAX_DEPTH = 64;

/** The annotations of an inputSchema, or the first rule that one of them breaks. */
export function scanParamHeaders(inputSchema: unknown): ParamHeaderScan {
  const scan: Scan = { headers: [], seen: new Set() };
  const fault = visit(inputSchema, { path: [], isReachable: true, depth: 0 }, scan);
  return fault === undefined
    ? { kind: 'ok', headers: scan.headers }
    : { kind: 'invalid', reason: fault };
}

interface Scan {
  readonly headers: ParamHeader[];
  readonly seen: Set<string>;
}

interface Position {
  readonly path: readonly string[];
  /** Reached from the root through `properties` alone. */
  readonly isReachable: boolean;
  readonly depth: number;
}

function visit(node: unknown, at: Position, scan: Scan): string | undefined {
  if (!isObject(node)) return undefined;
  if (at.depth > MAX_DEPTH) return `inputSchema is nested deeper than ${MAX_DEPTH} levels`;
  if (Object.hasOwn(node, ANNOTATION)) {
    const fault = judge(node, at, scan);
    if (fault !== undefined) return fault;
  }
  for (const child of childrenOf(node, at)) {
    const fault = visit(child.node, child.at, scan);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function* childrenOf(
  node: Members,
  at: Position,
): Generator<{ readonly node: unknown; readonly at: Position }> {
  const depth = at.depth + 1;
  const { properties } = node;
  if (isObject(properties)) {
    for (const [name, child] of Object.entries(properties))
      yield { node: child, at: { path: [...at.path, name], isReachable: at.isReachable, depth } };
  }
  const elsewhere: Position = { path: at.path, isReachable: false, depth };
  for (const keyword of SCHEMA_KEYWORDS) {
    const value = node[keyword];
    for (const child of Array.isArray(value) ? value : [value])
      yield { node: child, at: elsewhere };
  }
  for (const keyword of MAP_KEYWORDS) {
    const map = node[keyword];
    if (isObject(map)) for (const child of Object.values(map)) yield { node: child, at: elsewhere };
  }
}

function judge(node: Members, { path, isReachable }: Position, scan: Scan): string | undefined {
  const value = node[ANNOTATION];
  const where = `${ANNOTATION} at ${JSON.stringify(path.join('.'))}`;
  if (!isReachable || path.length === 0)
    return `${where} is not on a property that is reached through "properties" alone`;
  if (typeof value !== 'string' || !TOKEN.test(value)) return `${where} is not a header name`;
  if (!isPrimitiveType(node.type)) return `${where} is not on a string, integer or boolean`;
  const key = value.toLowerCase();
  if (scan.seen.has(key)) return `${where} repeats the name ${JSON.stringify(value)}`;
  scan.seen.add(key);
  scan.headers.push({ header: `${HEADER_PREFIX}${value}`, path });
  return undefined;
}

/** One primitive type; `null` beside it only says that the value may be left out. */
function isPrimitiveType(type: unknown): boolean {
  if (!Array.isArray(type)) return PRIMITIVE_TYPES.has(type);
  const types = type.filter((member) => member !== 'null');
  return types.length === 1 && PRIMITIVE_TYPES.has(types[0]);
}

/** Appends name and value of every header whose argument is present. */
export function appendParamHeaders(
  into: string[],
  headers: readonly ParamHeader[],
  args: unknown,
): void {
  for (const { header, path } of headers) {
    const text = asHeaderText(valueAt(args, path));
    if (text !== undefined) into.push(header, encodeHeaderValue(text));
  }
}

function valueAt(root: unknown, path: readonly string[]): unknown {
  let node = root;
  for (const name of path) {
    if (!isObject(node) || !Object.hasOwn(node, name)) return undefined;
    node = node[name];
  }
  return node;
}

/** Null and absent values have no header; neither has what cannot be written without loss. */
function asHeaderText(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return value;
    case 'boolean':
      return value ? 'true' : 'false';
    case 'number':
      return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
    default:
      return undefined;
  }
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
