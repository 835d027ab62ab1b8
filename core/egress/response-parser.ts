// Reads the answer to one request at a time from the bytes of a connection, cut anywhere: RFC 9112,
// as strictly as it can be had. Whatever leaves two readers free to disagree about where an answer
// ends (two lengths, a length and chunks, other codings, bare CR or LF, folded lines) is a fault,
// and a fault ends the connection. Memory is bounded: at most one head, chunk line or trailer is
// kept; bodies pass through as they come. It opens, writes and closes nothing.

import type { IncomingHttpHeaders } from 'node:http';

import { errors } from 'undici';

import { parseFields } from './response-fields.ts';
import { frameResponse } from './response-framing.ts';
import type { Framing } from './response-framing.ts';

export interface ResponseListener {
  onHead(status: number, headers: IncomingHttpHeaders): void;
  /** A view of the bytes that were pushed, not a copy. */
  onBody(chunk: Buffer): void;
  /** Last; `hasSurplus` when more was pushed than belongs to the answer. */
  onEnd(hasSurplus: boolean): void;
  /** Last; the rest of the connection can't be understood. */
  onFault(error: Error): void;
}

/** Of a head or trailer section, as in undici and Node; undici counts names and values only. */
const MAX_HEAD_BYTES = 16_384;
/** Size and extensions of one chunk. */
const MAX_CHUNK_LINE_BYTES = 1_024;
/** Of the extensions of all chunks: more is no answer but a way to keep us busy. */
const MAX_EXTENSION_BYTES = 65_536;
const MAX_INTERIM_ANSWERS = 8;

const CR = 0x0d;
const LF = 0x0a;
const CRLF = Buffer.from('\r\n');
const BLANK_LINE = Buffer.from('\r\n\r\n');

/** `HTTP/1.1 200 OK`; that there is no control character is checked for the whole head. */
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: [^\r]*)?(?:\r\n|$)/;
/** A control character, or a CR or LF that is not part of a CRLF. */
const BAD_CHARACTER = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n/;
const CHUNK_LINE =
  /^([0-9A-Fa-f]+)(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)*$/;

/** With the codes of undici's parser. */
class ResponseFault extends Error {
  override readonly name = 'ResponseFault';
  readonly code: string;

  constructor(code: string) {
    super('the answer is not HTTP/1.1');
    this.code = `HPE_${code}`;
  }
}

type Part = 'idle' | 'head' | 'length' | 'until-close' | 'size' | 'data' | 'data-end' | 'trailer';

const PART_OF_BODY: Readonly<Record<Framing['body'], Part>> = {
  length: 'length',
  chunks: 'size',
  'until-close': 'until-close',
};

export class ResponseParser {
  readonly #listener: ResponseListener;
  #part: Part = 'idle';
  #isHeadRequest = false;
  #interimAnswers = 0;
  /** Of the body or of the chunk. */
  #missingBytes = 0;
  #extensionBytes = 0;
  /** The beginning of a head, chunk line or trailer. */
  #held: Buffer | undefined;
  #framing: Framing | undefined;

  constructor(listener: ResponseListener) {
    this.#listener = listener;
  }

  /** Of the answer that is being read or was read last; undefined before its head. */
  get framing(): Framing | undefined {
    return this.#framing;
  }

  /** From here on an answer is awaited. */
  begin(isHeadRequest: boolean): void {
    this.#part = 'head';
    this.#isHeadRequest = isHeadRequest;
    this.#interimAnswers = 0;
    this.#extensionBytes = 0;
    this.#held = undefined;
    this.#framing = undefined;
  }

  /** Reports nothing more, also of the bytes that are being read. */
  stop(): void {
    this.#part = 'idle';
    this.#held = undefined;
  }

  push(chunk: Buffer): void {
    let bytes = chunk;
    if (this.#held !== undefined) {
      bytes = Buffer.concat([this.#held, chunk]);
      this.#held = undefined;
    }
    let at = 0;
    while (at < bytes.length && this.#part !== 'idle') {
      const next = this.#read(bytes, at);
      if (next === -1) return;
      at = next;
    }
  }

  /** The server has sent everything; false when that was not a whole answer. */
  finish(): boolean {
    if (this.#part !== 'until-close') return false;
    this.#end(false);
    return true;
  }

  /** Where the next part begins, or -1 when the rest is not enough to read on or nobody listens. */
  #read(bytes: Buffer, at: number): number {
    switch (this.#part) {
      case 'head':
        return this.#readHead(bytes, at);
      case 'length':
      case 'data':
        return this.#readBody(bytes, at);
      case 'until-close':
        this.#listener.onBody(at === 0 ? bytes : bytes.subarray(at));
        return bytes.length;
      case 'size':
        return this.#readSize(bytes, at);
      case 'data-end':
        return this.#readDataEnd(bytes, at);
      case 'trailer':
        return this.#readTrailer(bytes, at);
      case 'idle':
        return -1;
      default:
        return this.#part satisfies never;
    }
  }

  #readHead(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(BLANK_LINE, at);
    if (end === -1) return this.#hold(bytes, at, MAX_HEAD_BYTES);
    if (end - at > MAX_HEAD_BYTES) return this.#overflow();
    const text = bytes.toString('latin1', at, end);
    const line = BAD_CHARACTER.test(text) ? null : STATUS_LINE.exec(text);
    const headers = line === null ? undefined : parseFields(text, line[0].length);
    if (line === null || headers === undefined) return this.#fault('INVALID_HEADER_TOKEN');
    const next = end + BLANK_LINE.length;
    const status = Number(line[2]);
    const isOld = line[1] === '0';
    if (status < 200) return this.#skipInterim(isOld || status === 101, next);
    const framing = frameResponse({ status, headers, isOld, isAnswerToHead: this.#isHeadRequest });
    if (typeof framing === 'string') return this.#fault(framing);
    this.#framing = framing;
    this.#part = PART_OF_BODY[framing.body];
    this.#missingBytes = framing.bytes;
    this.#listener.onHead(status, headers);
    if (this.#isAt('length') && this.#missingBytes === 0) return this.#end(next < bytes.length);
    return next;
  }

  /** 101 would end the protocol; HTTP/1.0 has no interim answers. */
  #skipInterim(isWrong: boolean, next: number): number {
    this.#interimAnswers += 1;
    if (isWrong || this.#interimAnswers > MAX_INTERIM_ANSWERS) return this.#fault('INVALID_STATUS');
    return next;
  }

  #readBody(bytes: Buffer, at: number): number {
    const end = Math.min(at + this.#missingBytes, bytes.length);
    const isWhole = at === 0 && end === bytes.length;
    this.#missingBytes -= end - at;
    this.#listener.onBody(isWhole ? bytes : bytes.subarray(at, end));
    if (this.#missingBytes > 0) return end;
    if (this.#isAt('length')) return this.#end(end < bytes.length);
    if (this.#isAt('data')) this.#part = 'data-end';
    return end;
  }

  #readSize(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(CRLF, at);
    if (end === -1) return this.#hold(bytes, at, MAX_CHUNK_LINE_BYTES);
    if (end - at > MAX_CHUNK_LINE_BYTES) return this.#overflow();
    const line = CHUNK_LINE.exec(bytes.toString('latin1', at, end));
    const size = line === null ? NaN : Number.parseInt(line[1] ?? '', 16);
    if (!Number.isSafeInteger(size)) return this.#fault('INVALID_CHUNK_SIZE');
    this.#extensionBytes += end - at - (line?.[1]?.length ?? 0);
    if (this.#extensionBytes > MAX_EXTENSION_BYTES) return this.#overflow();
    this.#missingBytes = size;
    this.#part = size === 0 ? 'trailer' : 'data';
    return end + CRLF.length;
  }

  #readDataEnd(bytes: Buffer, at: number): number {
    if (bytes[at] !== CR) return this.#fault('STRICT');
    if (at + 1 === bytes.length) return this.#hold(bytes, at, MAX_CHUNK_LINE_BYTES);
    if (bytes[at + 1] !== LF) return this.#fault('STRICT');
    this.#part = 'size';
    return at + CRLF.length;
  }

  /** Trailers are checked like headers, and dropped. */
  #readTrailer(bytes: Buffer, at: number): number {
    if (bytes[at] === CR && bytes[at + 1] === LF) return this.#end(at + CRLF.length < bytes.length);
    const end = bytes.indexOf(BLANK_LINE, at);
    if (end === -1) return this.#hold(bytes, at, MAX_HEAD_BYTES);
    if (end - at > MAX_HEAD_BYTES) return this.#overflow();
    const text = bytes.toString('latin1', at, end);
    if (BAD_CHARACTER.test(text) || parseFields(text, 0) === undefined)
      return this.#fault('INVALID_HEADER_TOKEN');
    return this.#end(end + BLANK_LINE.length < bytes.length);
  }

  /** Keeps the beginning of a line until its end has come; a line that went wrong is not waited for. */
  #hold(bytes: Buffer, at: number, maxBytes: number): number {
    const held = bytes.subarray(at);
    // What ends it may be there in part.
    if (held.length >= maxBytes + BLANK_LINE.length) return this.#overflow();
    if (hasBareLineFeed(held)) return this.#fault('CR_EXPECTED');
    this.#held = held;
    return -1;
  }

  /** The listener may have ended it all, which the compiler does not see. */
  #isAt(part: Part): boolean {
    return this.#part === part;
  }

  #end(hasSurplus: boolean): -1 {
    this.stop();
    this.#listener.onEnd(hasSurplus);
    return -1;
  }

  #overflow(): -1 {
    return this.#fail(new errors.HeadersOverflowError());
  }

  #fault(code: string): -1 {
    return this.#fail(new ResponseFault(code));
  }

  #fail(error: Error): -1 {
    this.stop();
    this.#listener.onFault(error);
    return -1;
  }
}

function hasBareLineFeed(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at - 1] !== CR) return true;
  }
  return false;
}
