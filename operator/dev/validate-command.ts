// `fairlead validate`: every problem of the manifests in files, with the API server's verdicts and
// the operator's cross-checks.

import pc from 'picocolors';

import { makeCommand, parseCommand } from './command-line.ts';
import { formatIssue } from './issue-text.ts';
import type { ManifestIssue } from './load-manifests.ts';
import { type DirectoryPlan, planDirectory } from './plan-directory.ts';
import { wantsColor } from './settings.ts';

export const EXIT = { good: 0, bad: 1, usage: 64 } as const;

const EXAMPLES = `
Checks what one object can tell exactly as the API server would, and then what refers to what:
servers that a binding names, namespaces that a server allows, CA bundles. Namespaces and
ConfigMaps count when they are among the files; other kinds are left alone.

Exit codes: 0 good, 1 bad, 64 wrong options, a path that cannot be read, or no object of
either kind.

Examples:
  fairlead validate ./mcp
  fairlead validate servers.yaml bindings.yaml --output json
  kubectl kustomize ./mcp | fairlead validate -
  fairlead validate examples/quickstart --development`;

interface Flags {
  readonly development?: true;
  readonly output: string;
}

export async function validateCommand(argv: readonly string[]): Promise<number> {
  const command = makeCommand(
    'validate',
    'Check McpServer and McpBinding YAML as the API server and the operator would.',
    EXAMPLES,
  )
    .argument('<path...>', 'files or directories; - for standard input')
    .option('--development', 'accept plain http to loopback addresses, as "fairlead dev" does')
    .option('--output <format>', 'text or json', 'text');
  const parsed = parseCommand<Flags>(command, argv);
  if (parsed.kind === 'exit') return parsed.code;
  const { flags, args } = parsed;
  if (flags.output !== 'text' && flags.output !== 'json') {
    process.stderr.write(
      'fairlead validate: --output must be text or json\nSee "fairlead validate --help".\n',
    );
    return EXIT.usage;
  }
  const plan = await planDirectory(args, { development: flags.development === true });
  if (flags.output === 'json') process.stdout.write(renderJson(plan));
  else print(plan);
  if (plan.kind === 'unreadable') return EXIT.usage;
  return plan.kind === 'ok' ? EXIT.good : EXIT.bad;
}

function renderJson(plan: DirectoryPlan): string {
  const issues = plan.kind === 'bad' ? plan.issues : [];
  const warnings = plan.kind === 'unreadable' ? [] : plan.warnings;
  const message = plan.kind === 'unreadable' ? { message: plan.message } : {};
  return `${JSON.stringify({ valid: plan.kind === 'ok', ...message, issues, warnings }, null, 2)}\n`;
}

function print(plan: DirectoryPlan): void {
  if (plan.kind === 'unreadable') {
    process.stderr.write(`fairlead validate: ${plan.message}\n`);
    return;
  }
  const colors = pc.createColors(wantsColor(process.stdout));
  const lines = (issues: readonly ManifestIssue[]): string =>
    issues.map((issue) => `${formatIssue(issue, colors)}\n`).join('');
  process.stdout.write(
    plan.warnings
      .map((issue) => `${colors.yellow('warning')} ${formatIssue(issue, colors)}\n`)
      .join(''),
  );
  const counted = `${count(plan.counts.servers, 'McpServer')}, ${count(plan.counts.bindings, 'McpBinding')} in ${count(plan.counts.files, 'file')}${plan.counts.others === 0 ? '' : `; ${count(plan.counts.others, 'object')} of other kinds left alone`}`;
  if (plan.kind === 'ok') process.stdout.write(`${colors.green('valid')}: ${counted}\n`);
  else
    process.stdout.write(
      `${lines(plan.issues)}${colors.red('invalid')}: ${count(plan.issues.length, 'problem')}; ${counted}\n`,
    );
}

function count(number: number, noun: string): string {
  return `${String(number)} ${noun}${number === 1 ? '' : 's'}`;
}
