// A build of the program into a folder of one's own, so that tests never touch dist/.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

export async function buildBundle(directory: string): Promise<void> {
  const rolldown = join(ROOT, 'node_modules', 'rolldown', 'bin', 'cli.mjs');
  const args = [rolldown, '-c', 'rolldown.config.ts', '--dir', directory];
  await promisify(execFile)(process.execPath, args, { cwd: ROOT });
}
