// `fairlead completion SHELL`: a script that completes commands, their options, and file names.
// Options are read from each command's own help text, so that they cannot differ from it.

import { execFileSync } from 'node:child_process';

import { COMMANDS, COMMAND_NAMES } from './commands.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** Of the commands whose next word is one of a few. */
const NEXT_WORDS = { completion: SHELLS, explain: ['egress'] } as const;

const HELP = `fairlead completion: print a completion script

Usage: fairlead completion bash|zsh|fish

Examples:
  source <(fairlead completion bash)
  fairlead completion zsh > "\${fpath[1]}/_fairlead"
  fairlead completion fish > ~/.config/fish/completions/fairlead.fish
`;

export function completionCommand(argv: readonly string[]): number {
  const [shell] = argv;
  if (shell === '--help' || shell === '-h') {
    process.stdout.write(HELP);
    return 0;
  }
  const known = SHELLS.find((candidate) => candidate === shell);
  if (known === undefined) {
    const what =
      shell === undefined ? 'name a shell' : `there is no script for ${JSON.stringify(shell)}`;
    process.stderr.write(
      `fairlead completion: ${what}: ${SHELLS.join(', ')}\nSee "fairlead completion --help".\n`,
    );
    return 64;
  }
  process.stdout.write(renderCompletion(known, readOptions()));
  return 0;
}

type Options = ReadonlyMap<string, readonly string[]>;

function readOptions(): Options {
  const program = process.argv[1] ?? '';
  return new Map(
    COMMAND_NAMES.map((name) => {
      const isOwn = name === 'completion' || name === 'version';
      const help = isOwn
        ? HELP
        : execFileSync(process.execPath, [program, name, '--help'], { encoding: 'utf8' });
      return [name, optionsOf(help)];
    }),
  );
}

/** Examples show options of other commands, too. */
export function optionsOf(help: string): string[] {
  const [own = ''] = help.split(/^Examples:/m);
  return [...new Set(own.match(/(?<=^|\s)--[a-z][a-z-]*/gm) ?? [])].toSorted();
}

export function renderCompletion(shell: Shell, options: Options): string {
  const names = COMMAND_NAMES;
  switch (shell) {
    case 'bash':
      return bash(names, options);
    case 'zsh':
      return `#compdef fairlead\nautoload -U bashcompinit && bashcompinit\n${bash(names, options)}`;
    case 'fish':
      return fish(options);
    default:
      return shell satisfies never;
  }
}

function bash(names: readonly string[], options: Options): string {
  const cases = [...options].map(([name, flags]) => `    ${name}) words="${flags.join(' ')}" ;;`);
  return `_fairlead() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${names.join(' ')}" -- "$current"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
    help) words="${names.join(' ')}" ;;
  esac
${bashNextWords()}
  COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
}
complete -o filenames -F _fairlead fairlead
`;
}

function bashNextWords(): string {
  return Object.entries(NEXT_WORDS)
    .map(
      ([name, words]) =>
        `  if [ "$COMP_CWORD" -eq 2 ] && [ "\${COMP_WORDS[1]}" = ${name} ]; then words="${words.join(' ')}"; fi`,
    )
    .join('\n');
}

function fish(options: Options): string {
  const lines = COMMAND_NAMES.map(
    (name) =>
      `complete -c fairlead -n __fish_use_subcommand -f -a ${name} -d ${JSON.stringify(COMMANDS[name]?.summary ?? '')}`,
  );
  for (const [name, flags] of options) {
    for (const flag of flags)
      lines.push(
        `complete -c fairlead -n "__fish_seen_subcommand_from ${name}" -l ${flag.slice(2)}`,
      );
  }
  for (const [name, words] of Object.entries(NEXT_WORDS))
    lines.push(
      `complete -c fairlead -n "__fish_seen_subcommand_from ${name}" -f -a "${words.join(' ')}"`,
    );
  return `${lines.join('\n')}\n`;
}
