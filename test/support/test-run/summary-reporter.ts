// A reporter of node:test for test/run.ts: the totals of the whole run as one line of JSON.

import type { TestEvent } from './test-events.ts';
import { totalsOf } from './test-events.ts';

// node --test takes a reporter as the default export of its module.
// oxlint-disable-next-line import/no-default-export
export default async function* summaryReporter(
  source: AsyncIterable<TestEvent>,
): AsyncGenerator<string> {
  for await (const event of source) {
    if (event.type === 'test:summary' && event.data.file === undefined) {
      yield `${JSON.stringify(totalsOf(event.data))}\n`;
    }
  }
}
