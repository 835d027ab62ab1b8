// Whole lines of a child's output, whatever the chunks.

import type { Readable } from 'node:stream';

export function readLines(stream: Readable | null, onLine: (line: string) => void): void {
  let rest = '';
  stream?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') onLine(line);
  });
  stream?.on('end', () => {
    if (rest !== '') onLine(rest);
  });
}
