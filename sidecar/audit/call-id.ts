// Ids of requests in the log: a random part for this process and a count. They look like UUIDs
// (RFC 9562, version 8: of our own making), since that is what log tools index; they name a
// request and prove nothing.

import { randomBytes } from 'node:crypto';

const COUNT_DIGITS = 12;
const prefix = processPart(randomBytes(10).toString('hex'));
let count = 0;

export function nextCallId(): string {
  count += 1;
  return prefix + count.toString(16).padStart(COUNT_DIGITS, '0');
}

function processPart(hex: string): string {
  const [a, b, c, d] = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 15), hex.slice(15, 18)];
  return `${a}-${b}-8${c}-a${d}-`;
}
