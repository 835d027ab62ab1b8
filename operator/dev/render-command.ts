// `fairlead render`: the sidecar configurations that the operator would write, as files.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import pc from 'picocolors';

import { CONFIG_FILE } from '#core/config/sidecar-config.ts';
import { makeDirectory } from '#core/make-directory.ts';

import { makeCommand, parseCommand } from './command-line.ts';
import { formatIssue } from './issue-text.ts';
import { planDirectory } from './plan-directory.ts';
import { wantsColor } from './settings.ts';

const EXIT = { good: 0, bad: 1, usage: 64, cannotCreate: 73 } as const;

const EXAMPLES = `
Writes OUT/<namespace>/<binding>/${CONFIG_FILE}: byte for byte what the operator puts into the
binding's ConfigMap. A directory of it can be mounted into a sidecar as it is.

Exit codes: 0 written, 1 invalid manifests (nothing is written), 64 wrong options, a path that
cannot be read, or no object of either kind, 73 the output cannot be written.

Examples:
  fairlead render ./mcp --out ./rendered
  fairlead render ./mcp --out ./rendered && fairlead sidecar --config-dir ./rendered/team/desk-agent`;

interface Flags {
  readonly out: string;
  readonly development?: true;
}

export async function renderCommand(argv: readonly string[]): Promise<number> {
  const command = makeCommand(
    'render',
    'Write the sidecar configurations that the operator would write.',
    EXAMPLES,
  )
    .argument('<path...>', 'files or directories; - for standard input')
    .requiredOption('--out <dir>', 'where to write')
    .option('--development', 'accept plain http to loopback addresses, as "fairlead dev" does');
  const parsed = parseCommand<Flags>(command, argv);
  if (parsed.kind === 'exit') return parsed.code;
  const { flags, args } = parsed;
  const plan = await planDirectory(args, { development: flags.development === true });
  switch (plan.kind) {
    case 'unreadable':
      process.stderr.write(`fairlead render: ${plan.message}\n`);
      return EXIT.usage;
    case 'bad': {
      const colors = pc.createColors(wantsColor(process.stderr));
      for (const issue of plan.issues) process.stderr.write(`${formatIssue(issue, colors)}\n`);
      return EXIT.bad;
    }
    case 'ok':
      return writeAll(plan.bindings, flags.out);
    default:
      return plan satisfies never;
  }
}

async function writeAll(
  bindings: readonly { readonly id: string; readonly text: string; readonly revision: string }[],
  out: string,
): Promise<number> {
  try {
    for (const { id, text, revision } of bindings) {
      const directory = join(out, ...id.split('/'));
      makeDirectory(directory);
      await writeFile(join(directory, CONFIG_FILE), text);
      process.stdout.write(`${join(directory, CONFIG_FILE)}  revision ${revision.slice(0, 12)}\n`);
    }
    return EXIT.good;
  } catch (error) {
    process.stderr.write(
      `fairlead render: ${error instanceof Error ? error.message : 'the output cannot be written'}\n`,
    );
    return EXIT.cannotCreate;
  }
}
