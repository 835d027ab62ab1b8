// Where an answer ends, and whether its connection can carry another one: RFC 9112 sections 6.3 and
// 9.3, without the leniency. Two statements about one length, or a coding other than chunked, leave
// it open and are faults. Pure.

import type { IncomingHttpHeaders } from 'node:http';

export interface ResponseHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** HTTP/1.0, which has no chunks and keeps no connection. */
  readonly isOld: boolean;
  readonly isAnswerToHead: boolean;
}

export interface Framing {
  readonly body: 'length' | 'chunks' | 'until-close';
  /** For `length`. */
  readonly bytes: number;
  readonly isKeptAlive: boolean;
  /** How long the server says that it keeps an idle connection. */
  readonly keepAliveMs: number | undefined;
}

export type FramingFault = 'INVALID_CONTENT_LENGTH' | 'INVALID_TRANSFER_ENCODING';

const DIGITS = /^[0-9]+$/;
const KEEP_ALIVE_SECONDS = /(?:^|[\s,;])timeout=([0-9]+)/i;

export function frameResponse(head: ResponseHead): Framing | FramingFault {
  const { headers, isOld } = head;
  const length = contentLength(headers['content-length']);
  if (length === 'bad') return 'INVALID_CONTENT_LENGTH';
  const isChunked = headers['transfer-encoding'] !== undefined;
  if (isChunked && (length !== undefined || isOld || !isOnlyChunked(headers)))
    return 'INVALID_TRANSFER_ENCODING';
  const keepAliveMs = keepAliveTime(headers['keep-alive']);
  const isKeptAlive = !isOld && !saysClose(headers.connection);
  if (isBodiless(head)) {
    // A server that announces a body where none may be could send it, too; to HEAD it always does.
    const isCredible = !head.isAnswerToHead && !announcesBody(headers);
    return { body: 'length', bytes: 0, isKeptAlive: isKeptAlive && isCredible, keepAliveMs };
  }
  if (isChunked) return { body: 'chunks', bytes: 0, isKeptAlive, keepAliveMs };
  if (length === undefined)
    return { body: 'until-close', bytes: 0, isKeptAlive: false, keepAliveMs };
  return { body: 'length', bytes: length, isKeptAlive, keepAliveMs };
}

function announcesBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function isBodiless({ status, isAnswerToHead }: ResponseHead): boolean {
  return isAnswerToHead || status === 204 || status === 304;
}

/** A repeated line is a list, and a list is no length. */
function contentLength(text: string | readonly string[] | undefined): number | undefined | 'bad' {
  if (text === undefined) return undefined;
  if (typeof text !== 'string' || !DIGITS.test(text)) return 'bad';
  const length = Number(text);
  return Number.isSafeInteger(length) ? length : 'bad';
}

function isOnlyChunked(headers: IncomingHttpHeaders): boolean {
  const coding: string | readonly string[] | undefined = headers['transfer-encoding'];
  return typeof coding === 'string' && coding.toLowerCase() === 'chunked';
}

function saysClose(connection: string | readonly string[] | undefined): boolean {
  if (connection === undefined || connection === 'keep-alive') return false;
  return asText(connection)
    .split(',')
    .some((option) => option.trim().toLowerCase() === 'close');
}

function keepAliveTime(text: string | readonly string[] | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = KEEP_ALIVE_SECONDS.exec(asText(text))?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}

function asText(value: string | readonly string[]): string {
  return typeof value === 'string' ? value : value.join(',');
}
