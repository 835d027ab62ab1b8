// The event stream that answers one exchange: frames JSON-RPC messages as SSE, gathers what is
// sent within one tick into one write, keeps the stream alive, and reports back-pressure.
// It never resumes and never numbers events: a broken stream is a lost request.

import type { ServerResponse } from 'node:http';

import type { CallRecord } from '#sidecar/audit/call-record.ts';
import type { KeptAliveStream, StreamKeepAlive } from './stream-keep-alive.ts';

/** `X-Accel-Buffering` and `Cache-Control` keep middleboxes from holding events back. */
const STREAM_HEADERS = [
  'Content-Type',
  'text/event-stream',
  'Cache-Control',
  'no-cache',
  'X-Accel-Buffering',
  'no',
];
/** Bytes waiting for the socket before `send` says stop; the same as Node's own mark. */
const HIGH_WATER_CHARACTERS = 65_536;

export class AnswerStream implements KeptAliveStream {
  silentTicks = 0;
  slot = -1;
  readonly #response: ServerResponse;
  readonly #record: CallRecord;
  readonly #keepAlive: StreamKeepAlive;
  #pending = '';
  #isFlushScheduled = true;
  #isEnded = false;

  constructor(response: ServerResponse, record: CallRecord, keepAlive: StreamKeepAlive) {
    this.#response = response;
    this.#record = record;
    this.#keepAlive = keepAlive;
    response.writeHead(200, STREAM_HEADERS);
    // The head leaves in this tick, with the first event when there is one: readers must not wait.
    process.nextTick(this.#flush);
    keepAlive.add(this);
    response.once('close', this.#forget);
  }

  get isOpen(): boolean {
    return !this.#isEnded && !this.#response.destroyed;
  }

  /** One JSON-RPC message. False: stop until `onDrain` fires. */
  send(data: string): boolean {
    if (!this.isOpen) return true;
    this.#push(
      `data: ${data.includes('\n') || data.includes('\r') ? data.replace(/\r\n?|\n/g, '\ndata: ') : data}\n\n`,
    );
    return this.#pending.length < HIGH_WATER_CHARACTERS && !this.#response.writableNeedDrain;
  }

  /** Runs once, when the socket has taken what was sent. */
  onDrain(listener: () => void): void {
    process.nextTick(() => {
      if (this.isOpen && this.#response.writableNeedDrain) this.#response.once('drain', listener);
      else listener();
    });
  }

  /** Ends the stream after what was sent; a second call does nothing. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#keepAlive.remove(this);
    const last = this.#pending;
    this.#pending = '';
    if (this.#response.destroyed) return;
    if (last === '') this.#response.end();
    else this.#response.end(last);
  }

  writeComment(): void {
    if (this.isOpen && !this.#response.writableNeedDrain) this.#push(': keep-alive\n\n');
  }

  #push(frame: string): void {
    this.silentTicks = 0;
    this.#record.responseBytes += Buffer.byteLength(frame);
    this.#pending += frame;
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    process.nextTick(this.#flush);
  }

  readonly #flush = (): void => {
    this.#isFlushScheduled = false;
    if (!this.isOpen) return;
    if (this.#pending === '') {
      this.#response.flushHeaders();
      return;
    }
    const frames = this.#pending;
    this.#pending = '';
    this.#response.write(frames);
  };

  readonly #forget = (): void => {
    this.#isEnded = true;
    this.#keepAlive.remove(this);
  };
}
