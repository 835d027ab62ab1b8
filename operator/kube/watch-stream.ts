// Turns the bytes of a watch into frames. Lines are split as bytes, because a chunk may end inside a
// UTF-8 character, and capped, because a broken proxy may never send a line end.
// Nothing is swallowed: a frame that cannot be read, a stream that ends inside a frame and an ERROR frame
// all throw, so that the informer can decide what the gap means.

import { KubeError, errorFromAnswer, isRecord, parseStatus } from './kube-error.ts';
import type { KubeObject } from './kube-object.ts';

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';

export interface WatchEvent {
  readonly type: WatchEventType;
  readonly object: KubeObject;
}

/** `reason` of the error thrown for bytes that are no watch frame. */
export const MALFORMED_WATCH = 'MalformedWatch';

const MAX_LINE_BYTES = 16 * 1024 * 1024;
const LINE_FEED = 0x0a;

export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  maxLineBytes: number = MAX_LINE_BYTES,
): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let partBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      const line = Buffer.concat([...parts, chunk.subarray(start, end)]).toString('utf8');
      parts = [];
      partBytes = 0;
      start = end + 1;
      if (line.trim() !== '') yield line;
    }
    const rest = chunk.subarray(start);
    if (rest.length > 0) parts.push(rest);
    partBytes += rest.length;
    if (partBytes > maxLineBytes)
      throw malformed(`a line of the watch is over ${String(maxLineBytes)} bytes`);
  }
  const last = Buffer.concat(parts).toString('utf8');
  if (last.trim() === '') return;
  // A whole last frame without its line end is as good as any; half of one is a lost event.
  if (!isJson(last)) throw malformed('the watch ended inside a frame');
  yield last;
}

export async function* readWatchEvents(
  chunks: AsyncIterable<Uint8Array>,
  request: string,
): AsyncGenerator<WatchEvent> {
  for await (const line of splitLines(chunks)) yield parseWatchLine(line, request);
}

/** Pure: one line to one event. Throws KubeError for an ERROR frame and for anything that is no frame. */
export function parseWatchLine(line: string, request: string): WatchEvent {
  const frame = parseJson(line);
  if (!isRecord(frame)) throw malformed('a line of the watch is not a JSON object');
  const { type, object } = frame;
  if (type === 'ERROR')
    throw errorFromAnswer({ httpStatus: parseStatus(object).code ?? 500, body: object, request });
  if (type !== 'ADDED' && type !== 'MODIFIED' && type !== 'DELETED' && type !== 'BOOKMARK') {
    throw malformed(
      `a frame of the watch has the type ${JSON.stringify(type)?.slice(0, 64) ?? 'undefined'}`,
    );
  }
  if (!isKubeObject(object)) throw malformed('a frame of the watch holds no object');
  return { type, object };
}

/** True for anything with object metadata; a bookmark's object has no name. */
export function isKubeObject(value: unknown): value is KubeObject {
  return isRecord(value) && isRecord(value['metadata']);
}

function malformed(message: string): KubeError {
  return new KubeError('server', { message, reason: MALFORMED_WATCH, outcome: 'unknown' });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isJson(text: string): boolean {
  return parseJson(text) !== undefined;
}
