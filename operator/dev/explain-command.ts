// `fairlead explain egress`: what the egress guard says to one URL, and which step says it.

import { Argument } from 'commander';
import pc from 'picocolors';

import { systemClock } from '#core/clock.ts';
import { checkSidecarConfig } from '#core/config/sidecar-config.ts';
import type { ServerConfig } from '#core/config/sidecar-config.ts';

import { makeCommand, parseCommand } from './command-line.ts';
import { describeUrl, explainServer, decisiveServer, serversFor } from './explain-egress.ts';
import type { ExplainedServer } from './explain-egress.ts';
import { NOTHING_JUDGED, renderExplainJson, renderExplainText } from './explain-page.ts';
import type { ExplainPage } from './explain-page.ts';
import { formatIssue } from './issue-text.ts';
import { pickBinding } from './pick-binding.ts';
import { type PlannedBinding, planDirectory } from './plan-directory.ts';
import { wantsColor } from './settings.ts';
import { EXIT as VALIDATE_EXIT } from './validate-command.ts';

const EXIT = {
  allowed: 0,
  denied: 1,
  unknown: 2,
  usage: VALIDATE_EXIT.usage,
  invalid: VALIDATE_EXIT.bad,
} as const;

const EXAMPLES = `
Judges the URL with the sidecar's own guard, by what the operator would render from the same YAML,
and prints each step with its verdict. The first step that denies decides; a denial says which
field to change.

Which servers are asked: those of the binding whose endpoint has the URL's scheme, host and port,
for only their calls go there; when there is none, every server of the binding. --server asks one.
The URL is allowed when one of them allows it.

Addresses are judged with --resolve only: as this machine resolves the name, which may differ from
a pod's answer. The resolver gets 80 % of the server's connectTimeout, as in the guard, and 10
seconds at most. Nothing is connected to. Without --resolve, "allowed" says nothing of addresses.

Exit codes: 0 allowed, 1 denied or invalid manifests, 2 unknown (the resolver failed), 64 wrong
options, a path that cannot be read, no binding, or several and none chosen.

Examples:
  fairlead explain egress https://mcp.example.com/mcp -f examples/cluster
  fairlead explain egress https://mcp.example.com/mcp -f ./mcp --binding team/desk-agent --resolve
  fairlead explain egress https://login.example.com/token -f ./mcp --server issues --output json
  kubectl kustomize ./mcp | fairlead explain egress https://mcp.example.com/mcp -f -`;

interface Flags {
  readonly file: readonly string[];
  readonly binding?: string;
  readonly server?: string;
  readonly resolve?: true;
  readonly development?: true;
  readonly output: string;
}

export async function explainCommand(argv: readonly string[]): Promise<number> {
  const command = makeCommand('explain', 'Say whether a URL may be reached, and why.', EXAMPLES)
    .addArgument(new Argument('<subject>', 'what to explain').choices(['egress']))
    .argument('<url>', 'the URL to judge')
    .requiredOption(
      '-f, --file <path>',
      'file or directory of McpServer and McpBinding YAML; - for standard input; may be repeated',
      (path: string, others: readonly string[] | undefined) => [...(others ?? []), path],
    )
    .option('--binding <ns/name>', 'whose servers, when there are several McpBindings')
    .option('--server <alias>', 'judge by this server of the binding only')
    .option('--resolve', 'ask the resolver, and judge every address')
    .option('--development', 'accept plain http to loopback addresses, as "fairlead dev" does')
    .option('--output <format>', 'text or json', 'text');
  const parsed = parseCommand<Flags>(command, argv);
  if (parsed.kind === 'exit') return parsed.code;
  const { flags, args } = parsed;
  if (flags.output !== 'text' && flags.output !== 'json')
    return usage('--output must be text or json');
  return explain(args[1] ?? '', flags);
}

async function explain(text: string, flags: Flags): Promise<number> {
  const isDevelopment = flags.development === true;
  const plan = await planDirectory(flags.file, { development: isDevelopment });
  switch (plan.kind) {
    case 'unreadable':
      return usage(plan.message);
    case 'bad': {
      const colors = pc.createColors(wantsColor(process.stderr));
      if (flags.output === 'json')
        process.stdout.write(
          renderExplainJson({ verdict: 'invalid', ...NOTHING_JUDGED, issues: plan.issues }),
        );
      else for (const issue of plan.issues) process.stderr.write(`${formatIssue(issue, colors)}\n`);
      return EXIT.invalid;
    }
    case 'ok':
      return explainFor(plan.bindings, text, flags);
    default:
      return plan satisfies never;
  }
}

async function explainFor(
  bindings: readonly PlannedBinding[],
  text: string,
  flags: Flags,
): Promise<number> {
  const source = flags.file.join(', ');
  const choice = pickBinding(bindings, { wanted: flags.binding, source });
  if (choice.kind === 'none') return usage(`${source} has no McpBinding, so no server is used.`);
  if (choice.kind === 'unclear') return usage(choice.message);
  const { id } = choice.binding;
  const servers = serversOf(choice.binding, flags);
  const asked =
    flags.server === undefined ? servers : servers.filter(({ alias }) => alias === flags.server);
  if (asked.length === 0) return usage(noServer(id, servers, flags.server));
  const page = await judge(text, asked, flags);
  return print({ ...page, binding: id }, flags);
}

/** What the sidecar would read: the rendered bytes through its own parser. */
function serversOf(binding: PlannedBinding, flags: Flags): readonly ServerConfig[] {
  const verdict = checkSidecarConfig(JSON.parse(binding.text), {
    development: flags.development === true,
  });
  if (verdict.kind === 'ok') return verdict.config.servers;
  throw new TypeError(`the config of ${binding.id} is not one that a sidecar accepts`);
}

function noServer(
  id: string,
  servers: readonly ServerConfig[],
  wanted: string | undefined,
): string {
  if (servers.length === 0) return `McpBinding ${id} has no server in use (all are suspended).`;
  return `McpBinding ${id} has no server ${JSON.stringify(wanted)}. It has: ${servers.map(({ alias }) => alias).join(', ')}`;
}

async function judge(
  text: string,
  asked: readonly ServerConfig[],
  flags: Flags,
): Promise<ExplainPage> {
  const url = URL.parse(text);
  if (url === null)
    return {
      verdict: 'denied',
      ...NOTHING_JUDGED,
      stage: 'parse',
      reason: 'not-a-url',
      remedy: 'Write an absolute URL such as "https://mcp.example.com/mcp".',
    };
  const options = {
    isDevelopment: flags.development === true,
    isResolving: flags.resolve === true,
    clock: systemClock,
  };
  const servers: ExplainedServer[] = [];
  // One after the other: each lookup is a process.
  for (const server of serversFor(asked, url))
    servers.push(await explainServer(server, url, options));
  const decisive = decisiveServer(servers);
  return {
    verdict: decisive.verdict,
    ...NOTHING_JUDGED,
    stage: decisive.stage,
    reason: decisive.reason,
    remedy: decisive.remedy,
    url: describeUrl(url, text),
    servers,
  };
}

function print(page: ExplainPage, flags: Flags): number {
  const colors = pc.createColors(wantsColor(process.stdout));
  process.stdout.write(
    flags.output === 'json' ? renderExplainJson(page) : renderExplainText(page, colors),
  );
  return EXIT[page.verdict];
}

function usage(message: string): number {
  process.stderr.write(`fairlead explain: ${message}\nSee "fairlead explain --help".\n`);
  return EXIT.usage;
}
