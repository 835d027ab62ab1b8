// Finds where the members of a JSON object begin and end, without building values: what is not
// looked at keeps its bytes, so that big integers, key order, white space and unknown fields
// survive. It works on any text in which structure is ASCII: a JavaScript string, or the latin1
// view of UTF-8 bytes, where an offset is a byte offset.
// It is no validator: texts have passed JSON.parse before. On anything else it throws SyntaxError
// or gives some members, but it always ends.

export interface JsonMember {
  /** Decoded; in a latin1 view, characters outside ASCII stay as their bytes. */
  readonly key: string;
  /** Of the key's opening quote. */
  readonly start: number;
  readonly valueStart: number;
  /** Behind the value. */
  readonly end: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const SPACE = 0x20;

/** A member whose own members are wanted too, read in the same pass. */
export interface NestedMembers {
  readonly key: string;
  readonly nested: NestedMembers | undefined;
  /** Set when the member is there and is an object. */
  members: JsonMember[] | undefined;
}

/** Members in the order of the text; the object's opening brace is at `start`. */
export function readMembers(text: string, start: number, nested?: NestedMembers): JsonMember[] {
  const members: JsonMember[] = [];
  let at = skipSpace(text, expect(text, start, OPEN_BRACE));
  if (text.charCodeAt(at) === CLOSE_BRACE) return members;
  for (;;) {
    const keyEnd = skipString(text, at);
    const key = decodeKey(text, at, keyEnd);
    const valueStart = skipSpace(text, expect(text, skipSpace(text, keyEnd), COLON));
    const end =
      nested !== undefined && nested.key === key && isObjectAt(text, valueStart)
        ? readNested(text, valueStart, nested)
        : skipValue(text, valueStart);
    members.push({ key, start: at, valueStart, end });
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === CLOSE_BRACE) return members;
    at = skipSpace(text, expect(text, at, COMMA));
  }
}

/** The object's end, which its last member tells. */
function readNested(text: string, start: number, nested: NestedMembers): number {
  const members = readMembers(text, start, nested.nested);
  nested.members = members;
  const last = members[members.length - 1];
  return skipSpace(text, last === undefined ? start + 1 : last.end) + 1;
}

/** Where the text's one value starts; the text may begin with white space. */
export function valueStartOf(text: string): number {
  return skipSpace(text, 0);
}

/** Whether the value at `start` is an object. */
export function isObjectAt(text: string, start: number): boolean {
  return text.charCodeAt(start) === OPEN_BRACE;
}

/** The keys of MCP messages; most keys are among them, and then no string is made. */
const COMMON_KEYS: readonly string[] = [
  'jsonrpc',
  'id',
  'method',
  'params',
  'name',
  'arguments',
  '_meta',
  'progressToken',
  'result',
  'error',
  'content',
  'structuredContent',
  'isError',
  'resultType',
];
const NONE: readonly string[] = [];
const COMMON_BY_LENGTH = groupByLength(COMMON_KEYS);

function groupByLength(keys: readonly string[]): readonly (readonly string[])[] {
  const groups: string[][] = [];
  for (const key of keys) (groups[key.length] ??= []).push(key);
  return Array.from(groups, (group) => group ?? []);
}

function decodeKey(text: string, start: number, end: number): string {
  for (const key of COMMON_BY_LENGTH[end - start - 2] ?? NONE)
    if (text.startsWith(key, start + 1)) return key;
  const raw = text.slice(start + 1, end - 1);
  return raw.includes('\\') ? (JSON.parse(text.slice(start, end)) as string) : raw;
}

function expect(text: string, at: number, code: number): number {
  if (text.charCodeAt(at) !== code) throw new SyntaxError('not a JSON object');
  return at + 1;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== SPACE && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
    at += 1;
  }
}

/** From the opening quote to behind the closing one. */
function skipString(text: string, start: number): number {
  let at = expect(text, start, QUOTE);
  for (;;) {
    at = text.indexOf('"', at);
    if (at === -1) throw new SyntaxError('a JSON string does not end');
    let before = at - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    at += 1;
    // An even number of backslashes escapes themselves, not the quote.
    if ((at - before) % 2 === 0) return at;
  }
}

function skipValue(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return skipString(text, start);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return skipContainer(text, start);
  let at = start;
  while (at < text.length && !endsScalar(text.charCodeAt(at))) at += 1;
  if (at === start) throw new SyntaxError('a JSON value is missing');
  return at;
}

function endsScalar(code: number): boolean {
  return code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || code <= SPACE;
}

function skipContainer(text: string, start: number): number {
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = skipString(text, at);
      continue;
    }
    at += 1;
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  throw new SyntaxError('a JSON value does not end');
}
