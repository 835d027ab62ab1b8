// Reads a request body up to a limit. What is over the limit is refused at once and the rest is
// drained within bounds, so that a client in the middle of writing sees the answer and not a
// reset connection; a client that does not stop is cut off.

import type { IncomingMessage } from 'node:http';

import type { Clock } from '#core/clock.ts';

import { BodyBuffer } from '#sidecar/upstream/body-buffer.ts';

/** How much, and for how long, a refused body is still read before the socket is closed. */
const DRAIN_BYTES = 64 * 1024 * 1024;
const DRAIN_MS = 5_000;

export interface BodySink {
  onBody(body: Buffer): void;
  onTooLarge(): void;
}

export function isDeclaredTooLarge(request: IncomingMessage, maxBytes: number): boolean {
  const declared = request.headers['content-length'];
  return declared !== undefined && Number(declared) > maxBytes;
}

/** Calls the sink once, or never when the client goes away first. */
export function readBody(request: IncomingMessage, maxBytes: number, sink: BodySink): void {
  let first: Buffer | undefined;
  let rest: BodyBuffer | undefined;
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxBytes) {
      request.removeAllListeners('data');
      request.removeAllListeners('end');
      sink.onTooLarge();
    } else if (first === undefined) first = chunk;
    else {
      if (rest === undefined) {
        rest = new BodyBuffer();
        rest.push(first, maxBytes);
      }
      rest.push(chunk, maxBytes);
    }
  });
  // Almost every body is one chunk, which is then used as it is.
  request.on('end', () =>
    sink.onBody(rest === undefined ? (first ?? Buffer.alloc(0)) : rest.whole()),
  );
}

/** Reads on and throws away; closes the socket when that takes too long or too much. */
export function drainBody(request: IncomingMessage, clock: Clock): void {
  if (request.complete) return;
  let drained = 0;
  const giveUp = (): void => {
    request.socket.destroy();
  };
  const timer = clock.setTimer(DRAIN_MS, giveUp, { unref: true });
  request.on('data', (chunk: Buffer) => {
    drained += chunk.length;
    if (drained > DRAIN_BYTES) giveUp();
  });
  request.once('close', () => timer.cancel());
  request.resume();
}
