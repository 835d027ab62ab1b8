// What a client program of the interoperability tests is told and what it prints: one JSON
// document each. `tools/list` first, then the calls in order.

export interface ClientPlan {
  readonly url: string;
  readonly era: 'legacy' | 'modern';
  readonly calls: readonly {
    readonly name: string;
    readonly arguments: Readonly<Record<string, unknown>>;
  }[];
}

export interface ClientReport {
  readonly protocolVersion: string | undefined;
  readonly serverName: string | undefined;
  readonly tools: readonly Readonly<Record<string, unknown>>[];
  readonly results: readonly unknown[];
}

export function readPlan(): ClientPlan {
  return JSON.parse(process.argv[2] ?? '{}') as ClientPlan;
}

export function printReport(report: ClientReport): void {
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
