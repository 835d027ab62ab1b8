#!/usr/bin/env node
// The one program: reads the first word and hands the rest to that subcommand, loading nothing else.

import { COMMANDS, COMMAND_NAMES } from './commands.ts';
import { nodeFault } from './node-version.ts';

const EXIT_FAILURE = 1;
const EXIT_USAGE = 64;

async function run(argv: readonly string[]): Promise<number> {
  const fault = nodeFault(process.versions.node);
  if (fault !== undefined) {
    process.stderr.write(`${fault}\n`);
    return EXIT_FAILURE;
  }
  const [word, ...rest] = argv;
  if (word === undefined || word === '--help' || word === '-h' || word === 'help')
    return help(rest);
  if (word === '--version' || word === '-v') return runCommand('version', []);
  return runCommand(word, rest);
}

async function runCommand(word: string, rest: readonly string[]): Promise<number> {
  const command = Object.hasOwn(COMMANDS, word) ? COMMANDS[word] : undefined;
  if (command === undefined) {
    const { suggestCommand } = await import('./suggest.ts');
    process.stderr.write(suggestCommand(word, COMMAND_NAMES));
    return EXIT_USAGE;
  }
  const main = await command.load();
  return main(rest);
}

async function help(words: readonly string[]): Promise<number> {
  const [word] = words;
  if (word !== undefined) return runCommand(word, ['--help']);
  const { renderHelp } = await import('./help.ts');
  process.stdout.write(renderHelp(COMMANDS));
  return 0;
}

process.exitCode = await run(process.argv.slice(2));
