// The results as text: each failure with all that was seen, and the sum as the last line. Pure.

import type { CaseResult } from './run-case.ts';

export function renderFailure(result: CaseResult): string {
  const { id, kind, policy, expected, got, differences, requests } = result;
  const lines = [`FAILED ${id} (kind ${kind}, policy ${policy ?? 'none'})`];
  if (expected !== undefined) lines.push(`  expected: ${expected}`);
  if (got !== undefined) lines.push(`  got:      ${got}`);
  lines.push(...differences.map((difference) => `  - ${difference}`));
  const seen = requests.map(({ method, url }) => `${method} ${url}`);
  lines.push(`  requests seen: ${seen.length === 0 ? 'none' : seen.join(', ')}`);
  return lines.join('\n');
}

export function renderSum(results: readonly CaseResult[]): string {
  const failed = results.filter(({ differences }) => differences.length > 0).length;
  return `${results.length - failed} passed, ${failed} failed`;
}
