// A reporter of node:test for people: one line per file when it ends, each failure in full with
// what its file printed, and each skipped test with its reason. Nothing about tests that pass.

import { relative } from 'node:path';
import { inspect } from 'node:util';

import { renderSeconds, renderTotals } from './run-plan.ts';
import type { TestEvent } from './test-events.ts';
import { totalsOf } from './test-events.ts';

/** Of each file only the end is kept: enough to see why it failed. */
const MAX_OUTPUT = 8_000;

// node --test takes a reporter as the default export of its module.
// oxlint-disable-next-line import/no-default-export
export default async function* progressReporter(
  source: AsyncIterable<TestEvent>,
): AsyncGenerator<string> {
  const outputs = new Map<string, string>();
  for await (const event of source) {
    switch (event.type) {
      case 'test:stdout':
      case 'test:stderr': {
        const { file, message } = event.data;
        outputs.set(file, `${outputs.get(file) ?? ''}${message}`.slice(-MAX_OUTPUT));
        break;
      }
      case 'test:fail':
        yield renderFailure(event.data);
        break;
      case 'test:pass':
        yield renderSkip(event.data);
        break;
      case 'test:summary':
        yield renderFile(event.data, outputs);
        break;
      default:
    }
  }
}

type EventData<T extends TestEvent['type']> = Extract<TestEvent, { type: T }>['data'];

function renderFailure({ name, file, line, details }: EventData<'test:fail'>): string {
  const { cause, failureType } = details.error as Error & { failureType?: string };
  // The parent of a failed test has nothing of its own to say.
  if (failureType === 'subtestsFailed') return '';
  const text = inspect(cause ?? details.error, { colors: false, depth: 5 });
  return `  FAIL ${name}\n       ${placeOf(file, line)}\n${text.replaceAll(/^/gm, '       ')}\n`;
}

function renderSkip({ name, skip, todo }: EventData<'test:pass'>): string {
  const reason = skip ?? todo;
  if (reason === undefined || reason === false) return '';
  return `  skip ${name}: ${reason === true ? 'no reason given' : reason}\n`;
}

function renderFile(
  summary: EventData<'test:summary'>,
  outputs: ReadonlyMap<string, string>,
): string {
  const { file, duration_ms: durationMs } = summary;
  if (file === undefined) return '';
  const totals = totalsOf(summary);
  const isGood = totals.failed === 0;
  const line = `${isGood ? 'ok  ' : 'FAIL'} ${placeOf(file)}  ${renderTotals(totals)}  ${renderSeconds(durationMs)}\n`;
  const output = outputs.get(file) ?? '';
  return isGood || output === ''
    ? line
    : `${line}       it printed:\n${output.replaceAll(/^/gm, '       ')}\n`;
}

function placeOf(file: string | undefined, line?: number): string {
  if (file === undefined) return '';
  const path = relative(process.cwd(), file);
  return line === undefined ? path : `${path}:${line}`;
}
