// docs/errors.md, from the one table in core/errors.ts.

import { ERRORS } from '#core/errors.ts';
import type { ErrorEntry } from '#core/errors.ts';

const HEAD = `# Errors

<!-- Generated from core/errors.ts by "npm run generate"; edits here are lost. -->

Every failure that Fairlead reports has one of these codes. Branch on the code; the text may change.

- **HTTP**: status of the answer. Failures of a tool call are answers that arrived, so they are 200.
- **Shown as**: \`tool result\` is a \`tools/call\` result with \`isError: true\`, so that the model can
  act on it; a number is the code of a JSON-RPC error; \`-\` never reaches an agent (start-up, conditions,
  exit codes).
- **Retry**: whether the same request may be sent again as it is. Fairlead itself repeats a call only
  when it was provably not sent, or when the tool only reads.
- **Level**: of the log line. **Condition**: reason in the status of an object, where it shows there.
`;

/** The whole document. */
export function renderErrorTable(): string {
  const rows = Object.entries<ErrorEntry>(ERRORS).map(([code, entry]) => rowOf(code, entry));
  const table = [
    '| Code | HTTP | Shown as | Retry | Level | Condition | What happened | What to do |',
    '|---|---|---|---|---|---|---|---|',
    ...rows,
  ];
  return `${HEAD}\n${table.join('\n')}\n`;
}

function rowOf(code: string, entry: ErrorEntry): string {
  const cells = [
    `\`${code}\``,
    entry.rpc === 'none' ? '-' : String(entry.httpStatus),
    surfaceOf(entry),
    entry.isRetriable ? 'yes' : 'no',
    entry.logLevel,
    entry.conditionReason === null ? '-' : `\`${entry.conditionReason}\``,
    entry.message,
    entry.next,
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('<', '&lt;')).join(' | ')} |`;
}

function surfaceOf({ rpc }: ErrorEntry): string {
  if (rpc === 'none') return '-';
  return rpc === 'tool-error' ? 'tool result' : String(rpc);
}
