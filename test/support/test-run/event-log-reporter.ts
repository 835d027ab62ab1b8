// A reporter of node:test for test/run.ts: what became of each test, as lines of JSON, while it
// happens, so that a file that has to be ended still says where it was.

import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';

import type { LoggedEvent } from './file-result.ts';

// node --test takes a reporter as the default export of its module.
// oxlint-disable-next-line import/no-default-export
export default async function* eventLogReporter(
  source: AsyncIterable<TestEvent>,
): AsyncGenerator<string> {
  for await (const event of source) {
    const logged = loggedEvent(event);
    if (logged !== undefined) yield `${JSON.stringify(logged)}\n`;
  }
}

function loggedEvent(event: TestEvent): LoggedEvent | undefined {
  switch (event.type) {
    case 'test:dequeue':
      return { kind: 'begun', name: event.data.name };
    case 'test:complete':
      return { kind: 'ended', name: event.data.name };
    case 'test:pass':
      return event.data.details.type === 'suite' ? undefined : passed(event.data);
    case 'test:fail':
      return failed(event.data);
    case 'test:summary':
      return { kind: 'finished' };
    default:
      return undefined;
  }
}

type EventData<T extends TestEvent['type']> = Extract<TestEvent, { type: T }>['data'];

function passed({ name, skip, todo }: EventData<'test:pass'>): LoggedEvent {
  const reason = skip ?? todo;
  if (reason === undefined || reason === false) return { kind: 'passed' };
  return { kind: 'skipped', name, reason: reason === true ? 'no reason given' : reason };
}

function failed({ name, line, details }: EventData<'test:fail'>): LoggedEvent | undefined {
  const { cause, failureType } = details.error as Error & { failureType?: string };
  // A parent of a failed test has nothing of its own to say; a suite is not a test.
  const isParent = failureType === 'subtestsFailed';
  if (isParent && details.type === 'suite') return undefined;
  const text = isParent ? '' : inspect(cause ?? details.error, { colors: false, depth: 5 });
  return { kind: 'failed', name, line: line ?? 0, text };
}
