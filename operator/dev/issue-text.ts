// One complaint about a manifest, on one line: where, which object and field, what must be.

import type pc from 'picocolors';

import type { ManifestIssue } from './load-manifests.ts';

type Colors = Pick<ReturnType<typeof pc.createColors>, 'bold' | 'cyan' | 'dim'>;

/** `dir/servers.yaml:12:5: McpServer tools/github: spec.endpoint: must use https`. */
export function formatIssue(issue: ManifestIssue, colors: Colors): string {
  const place = colors.cyan(`${issue.file}:${String(issue.line)}:${String(issue.column)}:`);
  const object = issue.object === '' ? '' : ` ${issue.object}:`;
  const path = issue.path === '' ? '' : ` ${colors.bold(issue.path)}:`;
  return `${place}${object}${path} ${issue.message}`;
}
