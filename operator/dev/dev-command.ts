// `fairlead dev`: the command line of the development mode.

import { systemClock } from '#core/clock.ts';
import { stopSignal } from '#core/stop-signal.ts';

import { makeCommand, parseCommand } from './command-line.ts';
import { createJsonReport, createTextReport } from './dev-report.ts';
import { EXIT, runDev } from './dev-session.ts';
import { wantsColor } from './settings.ts';

const EXAMPLES = `
DIR holds the same McpServer and McpBinding YAML that a cluster gets. Plain http to loopback
addresses is accepted here, and only here. DIR/fairlead-dev.yaml may name local programs to run:

  processes:
    - name: notes
      command: [node, ./servers/notes.ts]
      env: { PORT: "7401" }
      readyUrl: http://127.0.0.1:7401/mcp

Ctrl-C lets the calls in flight finish; a second one, half a second or more later, ends all at once.

Exit codes: 0 after Ctrl-C, 1 invalid, failed or a second Ctrl-C, 64 wrong options, 66 nothing to
serve, 69 port in use.

Examples:
  fairlead dev examples/quickstart
  fairlead dev ./mcp --port 8000 --binding team/desk-agent
  fairlead dev ./mcp --output json | jq .`;

interface Flags {
  readonly port: string;
  readonly binding?: string;
  readonly stateDir?: string;
  readonly output: string;
}

export async function devCommand(argv: readonly string[]): Promise<number> {
  const command = makeCommand(
    'dev',
    'Serve a directory of YAML to the agents on this machine, live.',
    EXAMPLES,
  )
    .argument('<dir>', 'directory with McpServer and McpBinding YAML')
    .option('--port <n>', 'agent port on 127.0.0.1; 0 = any free', '7317')
    .option('--binding <ns/name>', 'which McpBinding to serve, when there are several')
    .option(
      '--state-dir <dir>',
      'where the sidecar keeps its state (default: a temporary directory)',
    )
    .option('--output <format>', 'text, or json: one event per line', 'text');
  const parsed = parseCommand<Flags>(command, argv);
  if (parsed.kind === 'exit') return parsed.code;
  const { flags, args } = parsed;
  const port = Number(flags.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    return usage('--port must be a number from 0 to 65535');
  if (flags.output !== 'text' && flags.output !== 'json')
    return usage('--output must be text or json');
  const report =
    flags.output === 'json'
      ? createJsonReport((text) => process.stdout.write(text))
      : createTextReport({
          out: (text) => process.stdout.write(text),
          err: (text) => process.stderr.write(text),
          isColored: wantsColor(process.stdout),
        });
  return runDev({
    directory: args[0] ?? '.',
    port,
    binding: flags.binding,
    stateDirectory: flags.stateDir,
    report,
    clock: systemClock,
    stop: stopSignal({ clock: systemClock, exitCode: EXIT.failure }),
  });
}

function usage(message: string): number {
  process.stderr.write(`fairlead dev: ${message}\nSee "fairlead dev --help".\n`);
  return EXIT.usage;
}
