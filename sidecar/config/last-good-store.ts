// The last accepted configuration, kept on the pod's volume: after a restart with a wrong or
// missing configuration it is what runs. Written whole or not at all, readable by this user only;
// what is read back is judged again, as anything else that comes from a disk.

import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { makeDirectory } from '#core/make-directory.ts';

export const LAST_GOOD_FILE = 'last-good.json';

export interface LastGoodStore {
  /** Undefined when there is none. */
  read(): Promise<string | undefined>;
  write(text: string): Promise<void>;
}

export function lastGoodStore(stateDirectory: string): LastGoodStore {
  const path = join(stateDirectory, LAST_GOOD_FILE);
  return {
    async read() {
      try {
        return await readFile(path, 'utf8');
      } catch {
        return undefined;
      }
    },
    async write(text) {
      makeDirectory(stateDirectory, 0o700);
      const draft = `${path}.${randomBytes(6).toString('hex')}`;
      try {
        await writeDurably(draft, text);
        await rename(draft, path);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
  };
}

/** On the disk before it gets its name: a name that a power cut leaves behind is a whole file. */
async function writeDurably(path: string, text: string): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  await file.writeFile(text);
  await file.sync();
}
