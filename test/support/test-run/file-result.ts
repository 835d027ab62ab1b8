// What became of one test file, from the events that its reporter logged and from how its process
// ended, and how that is shown. Pure.

import { NO_TESTS, renderSeconds, renderTotals } from './run-plan.ts';
import type { Totals } from './run-plan.ts';

export type LoggedEvent =
  | { readonly kind: 'begun' | 'ended'; readonly name: string }
  | { readonly kind: 'passed' | 'finished' }
  | { readonly kind: 'skipped'; readonly name: string; readonly reason: string }
  | {
      readonly kind: 'failed';
      readonly name: string;
      readonly line: number;
      readonly text: string;
    };

/** How the process of a test file ended. */
export interface FileEnd {
  readonly path: string;
  readonly exitCode: number | null;
  /** It was ended because it took longer than this. */
  readonly timedOutAfterMs: number | undefined;
  readonly durationMs: number;
  readonly eventLog: string;
  /** The end of what it printed. */
  readonly output: string;
}

export interface FileResult {
  readonly totals: Totals;
  /** For people, ends with a newline. */
  readonly text: string;
}

export function judgeFile(end: FileEnd): FileResult {
  const events = end.eventLog
    .split('\n')
    .filter((line) => line !== '')
    .map(parseEvent);
  const fault = fileFault(end, events);
  const counted = countEvents(events);
  const totals = fault === undefined ? counted : { ...counted, failed: counted.failed + 1 };
  return { totals, text: renderFile(end, { events, fault, totals }) };
}

function parseEvent(line: string): LoggedEvent {
  return JSON.parse(line) as LoggedEvent;
}

function countEvents(events: readonly LoggedEvent[]): Totals {
  const count = (kind: LoggedEvent['kind']): number =>
    events.filter((event) => event.kind === kind).length;
  return {
    ...NO_TESTS,
    passed: count('passed'),
    failed: count('failed'),
    skipped: count('skipped'),
  };
}

/** What is wrong with the file as a whole, which no test of it can say. */
function fileFault(end: FileEnd, events: readonly LoggedEvent[]): string | undefined {
  if (end.timedOutAfterMs !== undefined) {
    const limit = renderSeconds(end.timedOutAfterMs);
    const open = openTests(events);
    const where =
      open.length === 0 ? 'all tests had ended: a handle leaks' : `in: ${open.join(', ')}`;
    return `did not end within ${limit}; ${where}`;
  }
  if (!events.some(({ kind }) => kind === 'finished')) {
    return `ended with ${String(end.exitCode)} before its tests had ended`;
  }
  if (events.length === 1) return 'holds no test';
  const isUnexplained = end.exitCode !== 0 && !events.some(({ kind }) => kind === 'failed');
  return isUnexplained ? `ended with ${String(end.exitCode)}` : undefined;
}

function openTests(events: readonly LoggedEvent[]): string[] {
  const open: string[] = [];
  for (const event of events) {
    if (event.kind === 'begun') open.push(event.name);
    else if (event.kind === 'ended') open.splice(open.indexOf(event.name), 1);
  }
  return open;
}

interface Judged extends Pick<FileResult, 'totals'> {
  readonly events: readonly LoggedEvent[];
  readonly fault: string | undefined;
}

function renderFile(end: FileEnd, { events, fault, totals }: Judged): string {
  const isGood = totals.failed === 0;
  const took = renderSeconds(end.durationMs);
  const lines = [`${isGood ? 'ok  ' : 'FAIL'} ${end.path}  ${renderTotals(totals)}  ${took}`];
  const shown = new Set<string>();
  for (const event of events) {
    if (event.kind === 'skipped') lines.push(`       skipped: ${event.name}: ${event.reason}`);
    if (event.kind !== 'failed' || event.text === '') continue;
    // A failed hook fails every test of its file with the same words.
    const text = shown.has(event.text) ? 'the same as above' : event.text;
    shown.add(event.text);
    lines.push(`     ✖ ${event.name} (${end.path}:${event.line})`, indent(text));
  }
  if (fault !== undefined) lines.push(`     ✖ ${end.path} ${fault}`);
  if (!isGood && end.output !== '') lines.push('     it printed:', indent(end.output));
  return `${lines.join('\n')}\n`;
}

function indent(text: string): string {
  return text.trimEnd().replaceAll(/^/gm, '       ');
}
