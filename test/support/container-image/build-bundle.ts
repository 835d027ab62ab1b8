// A build of the program into a folder of one's own, so that tests never touch dist/.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

export function buildBundle(directory: string): Promise<void> {
  const rolldown = join(ROOT, 'node_modules', 'rolldown', 'bin', 'cli.mjs');
  const args = [rolldown, '-c', 'rolldown.config.ts', '--dir', directory];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { cwd: ROOT }, (error, _stdout, stderr) => {
      if (error === null) resolve();
      else reject(new Error(`the build failed: ${stderr.split('\n    at ')[0] ?? ''}`));
    });
  });
}
