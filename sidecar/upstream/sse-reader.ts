// Reads an event stream (WHATWG HTML, Server-sent events) from byte chunks of any size. Lines are
// split as bytes, where a terminator can't be part of a character, and decoded whole: no chunking
// can cut a character or a CRLF. Only `message` events with data are reported; comments, ids and
// retry times are read over. An event that the stream's end cuts off is none. Memory is bounded
// by the cap on one event; the stream as a whole has none.

import { BodyBuffer } from './body-buffer.ts';

export interface SseListener {
  onEvent(data: string): void;
  /** One event, or one line of any kind, is over the cap; nothing more is reported. */
  onTooLarge(): void;
}

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const DATA = Buffer.from('data');
const EVENT = Buffer.from('event');
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

export class SseReader {
  readonly #listener: SseListener;
  readonly #maxEventBytes: number;
  /** The unfinished line. */
  #line: BodyBuffer | undefined;
  #data: string | undefined;
  #dataBytes = 0;
  #isMessage = true;
  #isFirstLine = true;
  /** The chunk before ended in CR: an LF that follows belongs to it. */
  #skipsLineFeed = false;
  #lf = -1;
  #cr = -1;
  #isStopped = false;

  constructor(listener: SseListener, maxEventBytes: number) {
    this.#listener = listener;
    this.#maxEventBytes = maxEventBytes;
  }

  push(chunk: Buffer): void {
    let at = this.#skipsLineFeed && chunk[0] === LF ? 1 : 0;
    if (chunk.length > 0) this.#skipsLineFeed = false;
    this.#lf = chunk.indexOf(LF, at);
    this.#cr = chunk.indexOf(CR, at);
    for (
      let end = this.#lineEnd(chunk, at);
      end !== -1 && !this.#isStopped;
      end = this.#lineEnd(chunk, at)
    ) {
      this.#endLine(chunk, at, end);
      at = this.#behindTerminator(chunk, end);
    }
    if (!this.#isStopped && at < chunk.length) this.#keep(at === 0 ? chunk : chunk.subarray(at));
  }

  /** Each terminator is searched for once: a chunk of nothing but one kind costs no more. */
  #lineEnd(chunk: Buffer, at: number): number {
    if (this.#lf !== -1 && this.#lf < at) this.#lf = chunk.indexOf(LF, at);
    if (this.#cr !== -1 && this.#cr < at) this.#cr = chunk.indexOf(CR, at);
    if (this.#lf === -1) return this.#cr;
    return this.#cr !== -1 && this.#cr < this.#lf ? this.#cr : this.#lf;
  }

  #behindTerminator(chunk: Buffer, end: number): number {
    if (chunk[end] === LF) return end + 1;
    if (end + 1 < chunk.length) return chunk[end + 1] === LF ? end + 2 : end + 1;
    this.#skipsLineFeed = true;
    return end + 1;
  }

  /** Reports nothing more, also of the chunk that is being read. */
  stop(): void {
    this.#isStopped = true;
    this.#line = undefined;
    this.#data = undefined;
  }

  #keep(piece: Buffer): void {
    this.#line ??= new BodyBuffer();
    this.#line.push(piece, Infinity);
    this.#checkSize(0);
  }

  #endLine(chunk: Buffer, start: number, end: number): void {
    if (this.#line === undefined) {
      this.#readLine(chunk, start, end);
      return;
    }
    this.#line.push(chunk.subarray(start, end), Infinity);
    const line = this.#line.whole();
    this.#line = undefined;
    this.#readLine(line, 0, line.length);
  }

  #readLine(line: Buffer, from: number, end: number): void {
    let start = from;
    if (this.#isFirstLine) {
      this.#isFirstLine = false;
      if (startsWith(line, start, BYTE_ORDER_MARK)) start += BYTE_ORDER_MARK.length;
    }
    if (start === end) {
      this.#dispatch();
    } else if (isField(line, start, DATA)) {
      this.#appendData(line, start, end);
    } else if (isField(line, start, EVENT)) {
      const type = fieldValue(line, start + EVENT.length, end);
      this.#isMessage = type === '' || type === 'message';
    } else {
      this.#checkSize(end - start);
    }
  }

  #appendData(line: Buffer, start: number, end: number): void {
    if (!this.#checkSize(end - start)) return;
    const value = fieldValue(line, start + DATA.length, end);
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
    this.#dataBytes += end - start;
  }

  #dispatch(): void {
    const data = this.#isMessage ? this.#data : undefined;
    this.#data = undefined;
    this.#dataBytes = 0;
    this.#isMessage = true;
    if (data !== undefined && data !== '') this.#listener.onEvent(data);
  }

  #checkSize(lineBytes: number): boolean {
    if (
      (this.#line?.bytes ?? 0) + this.#dataBytes + lineBytes <=
      this.#maxEventBytes + FIELD_OVERHEAD
    )
      return true;
    this.stop();
    this.#listener.onTooLarge();
    return false;
  }
}

/** `data: ` is not part of the data. */
const FIELD_OVERHEAD = 6;

function startsWith(line: Buffer, at: number, prefix: Buffer): boolean {
  for (let index = 0; index < prefix.length; index++)
    if (line[at + index] !== prefix[index]) return false;
  return true;
}

/** A field name is followed by a colon or by the end of the line. */
function isField(line: Buffer, start: number, name: Buffer): boolean {
  if (!startsWith(line, start, name)) return false;
  const next = line[start + name.length];
  return next === COLON || next === LF || next === CR || next === undefined;
}

/** What follows the field name at `at`: one space behind the colon is not part of the value. */
function fieldValue(line: Buffer, at: number, end: number): string {
  const start = at + 1 < end && line[at + 1] === SPACE ? at + 2 : at + 1;
  return start >= end ? '' : line.toString('utf8', start, end);
}
