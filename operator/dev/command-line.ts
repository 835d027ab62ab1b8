// The common form of the commands for people: help with examples, exit code 64 for wrong options.

import { Command, CommanderError } from 'commander';

const EXIT_USAGE = 64;

export function makeCommand(name: string, summary: string, examples: string): Command {
  return new Command(`fairlead ${name}`)
    .description(summary)
    .addHelpText('after', examples)
    .helpOption('-h, --help', 'show this text')
    .showHelpAfterError(`See "fairlead ${name} --help".`)
    .exitOverride();
}

export type ParsedCommand<Flags> =
  | { readonly kind: 'run'; readonly flags: Flags; readonly args: readonly string[] }
  | { readonly kind: 'exit'; readonly code: number };

export function parseCommand<Flags extends object>(
  command: Command,
  argv: readonly string[],
): ParsedCommand<Flags> {
  try {
    command.parse([...argv], { from: 'user' });
    return { kind: 'run', flags: command.opts<Flags>(), args: command.args };
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return { kind: 'exit', code: error.exitCode === 0 ? 0 : EXIT_USAGE };
  }
}
