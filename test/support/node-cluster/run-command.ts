// Short-lived commands for setting up and tearing down a node: their output, or an error that
// holds what they said.

import { execFile } from 'node:child_process';

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Never rejects for a failing command. */
export function tryCommand(command: readonly string[], stdin = ''): Promise<CommandResult> {
  const [program = '', ...args] = command;
  return new Promise((resolve) => {
    const options = { maxBuffer: 64 * 1024 * 1024 };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 127;
      resolve({ code, stdout, stderr: stderr === '' && error !== null ? error.message : stderr });
    });
    child.stdin?.on('error', () => undefined).end(stdin);
  });
}

export async function runCommand(command: readonly string[], stdin = ''): Promise<string> {
  const { code, stdout, stderr } = await tryCommand(command, stdin);
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${stderr}`);
  return stdout;
}
