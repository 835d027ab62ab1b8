// A private directory with one rendered file, changed the way the kubelet changes a ConfigMap
// volume: a new dated directory, then one rename of the `..data` link. The sidecar reads it exactly
// as in a pod.

import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { CONFIG_FILE } from '#core/config/sidecar-config.ts';

export class MountedDirectory implements AsyncDisposable {
  readonly path: string;
  #generation = 0;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<MountedDirectory> {
    return new MountedDirectory(await mkdtemp(join(tmpdir(), 'fairlead-dev-')));
  }

  async write(text: string): Promise<void> {
    const previous = `..generation-${String(this.#generation)}`;
    this.#generation += 1;
    const next = `..generation-${String(this.#generation)}`;
    await mkdir(join(this.path, next), { mode: 0o700 });
    await writeFile(join(this.path, next, CONFIG_FILE), text, { mode: 0o600 });
    await symlink(next, join(this.path, '..data_tmp'));
    await rename(join(this.path, '..data_tmp'), join(this.path, '..data'));
    if (this.#generation === 1)
      await symlink(join('..data', CONFIG_FILE), join(this.path, CONFIG_FILE));
    else await rm(join(this.path, previous), { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}
