// Reads the one JSON line that mcpload prints. A window counts only when it has calls and not one
// of them, nor a session's opening or a warm-up call, has failed. Pure.

export type McploadReport =
  | {
      readonly kind: 'ok';
      readonly calls: number;
      readonly callsPerSecond: number;
      readonly p50Us: number;
      readonly p99Us: number;
    }
  | { readonly kind: 'invalid'; readonly reason: string };

export function parseMcploadReport(stdout: string): McploadReport {
  let parsed: unknown;
  try {
    parsed = JSON.parse(stdout);
  } catch {
    return {
      kind: 'invalid',
      reason: `mcpload printed no report: ${JSON.stringify(stdout.slice(0, 200))}`,
    };
  }
  const read = (name: string): number => {
    const value: unknown = Object(parsed)[name];
    return typeof value === 'number' ? value : Number.NaN;
  };
  const [calls, errors] = [read('calls'), read('errors')];
  if (!(calls > 0) || errors !== 0) {
    return {
      kind: 'invalid',
      reason: `${calls} calls, ${errors} failed; first: ${String(Object(parsed)['firsterr'])}`,
    };
  }
  const report = {
    kind: 'ok',
    calls,
    callsPerSecond: read('rps'),
    p50Us: read('p50'),
    p99Us: read('p99'),
  } as const;
  const isWhole = [report.callsPerSecond, report.p50Us, report.p99Us].every(Number.isFinite);
  return isWhole ? report : { kind: 'invalid', reason: 'the report lacks a figure' };
}
