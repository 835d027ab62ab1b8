// The answer of `fairlead explain egress` as one object, and as text for people. The object's fields
// are always there and never change their meaning: programs read them. Pure.

import type pc from 'picocolors';

import type { DenyReason, EgressStage, FailureReason } from '#core/egress/egress-policy.ts';

import type { ExplainedServer, ExplainStep, ExplainVerdict, ParsedUrl } from './explain-egress.ts';
import type { ManifestIssue } from './load-manifests.ts';

export interface ExplainPage {
  /** `invalid`: the manifests are, and nothing was judged. */
  readonly verdict: ExplainVerdict | 'invalid';
  /** Of the server that decided; `parse` comes before any policy. */
  readonly stage: EgressStage | 'parse' | null;
  readonly reason: DenyReason | FailureReason | 'ok' | 'not-a-url' | null;
  readonly remedy: string | null;
  /** `namespace/name`. */
  readonly binding: string | null;
  /** Null when the text is no URL. */
  readonly url: ParsedUrl | null;
  readonly servers: readonly ExplainedServer[];
  readonly issues: readonly ManifestIssue[];
}

export const NOTHING_JUDGED = {
  stage: null,
  reason: null,
  remedy: null,
  binding: null,
  url: null,
  servers: [],
  issues: [],
} as const satisfies Omit<ExplainPage, 'verdict'>;

export function renderExplainJson(page: ExplainPage): string {
  return `${JSON.stringify(page, null, 2)}\n`;
}

type Colors = ReturnType<typeof pc.createColors>;

export function renderExplainText(page: ExplainPage, colors: Colors): string {
  const servers = page.servers.map((server) => renderServer(server, colors));
  const blocks = [parseLine(page.url, colors), ...servers, ...lastLines(page, colors)];
  return `${blocks.join('\n\n')}\n`;
}

const STAGE_WIDTH = 10;
const STEP_WIDTH = 16;
const VERDICT_WIDTH = 9;

function parseLine(url: ParsedUrl | null, colors: Colors): string {
  const start = `  ${'parse'.padEnd(STAGE_WIDTH)}  ${'url'.padEnd(STEP_WIDTH)}`;
  if (url === null) return `${start}  ${paint('deny', colors)}  not-a-url`;
  const spelling = url.isHostAsWritten ? '' : ' (the text spells the host in another way)';
  const read = `scheme ${url.scheme}, host ${url.host}, port ${String(url.port)}, path ${url.path}${spelling}`;
  return `${start}  ${paint('allow', colors)}  ${colors.dim(read)}`;
}

function renderServer(server: ExplainedServer, colors: Colors): string {
  const name = `${colors.bold(server.alias)}  ${colors.dim(`McpServer ${server.namespace}/${server.name}, endpoint ${server.endpoint}`)}`;
  const lines = server.steps.map((step) => renderStep(step, colors));
  const verdict = `  ${verdictText(server, colors)}`;
  const remedy = server.remedy === null ? [] : [`  ${server.remedy}`];
  const origin =
    server.verdict !== 'denied' && !server.isEndpointOrigin
      ? [
          colors.yellow(
            '  Not the endpoint: the policy lists it, but calls go to the endpoint only.',
          ),
        ]
      : [];
  return [name, ...lines, verdict, ...remedy, ...origin].join('\n');
}

function renderStep({ stage, step, verdict, ...rest }: ExplainStep, colors: Colors): string {
  const words = [rest.reason, rest.detail].filter((word) => word !== null);
  const known = [rest.address, rest.note].filter((word) => word !== null).join('  ');
  const said = [words.join(' '), colors.dim(known)].filter((part) => part !== '').join('  ');
  const line = `  ${stage.padEnd(STAGE_WIDTH)}  ${step.padEnd(STEP_WIDTH)}  ${paint(verdict, colors)}  ${said}`;
  return line.trimEnd();
}

function paint(verdict: ExplainStep['verdict'], colors: Colors): string {
  const text = verdict.padEnd(VERDICT_WIDTH);
  switch (verdict) {
    case 'allow':
      return colors.green(text);
    case 'deny':
      return colors.red(text);
    case 'unknown':
      return colors.yellow(text);
    case 'not-asked':
      return colors.dim(text);
    default:
      return verdict satisfies never;
  }
}

interface Decided {
  readonly verdict: ExplainPage['verdict'];
  readonly stage: ExplainPage['stage'];
  readonly reason: ExplainPage['reason'];
}

/** One server has said it all. */
function lastLines(page: ExplainPage, colors: Colors): string[] {
  if (page.servers.length === 1) return [];
  const remedy = page.servers.length === 0 && page.remedy !== null ? `\n${page.remedy}` : '';
  return [`${verdictText(page, colors)}${remedy}`];
}

function verdictText({ verdict, stage, reason }: Decided, colors: Colors): string {
  switch (verdict) {
    case 'allowed':
      return colors.green('allowed');
    case 'denied':
    case 'invalid':
      return colors.red(`${verdict}: ${stage ?? ''} ${reason ?? ''}`);
    case 'unknown':
      return colors.yellow(`unknown: ${stage ?? ''} ${reason ?? ''}`);
    default:
      return verdict satisfies never;
  }
}
