// A private directory with one rendered file, changed the way the kubelet changes a ConfigMap
// volume: a new dated directory, then one rename of the `..data` link. The sidecar reads it exactly
// as in a pod.

import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { CONFIG_FILE } from '#core/config/sidecar-config.ts';

export class MountedDirectory implements AsyncDisposable {
  readonly path: string;
  /** Beside it, for what the sidecar keeps. */
  readonly statePath: string;
  readonly #root: string;
  /** For an end without farewell, like a second Ctrl-C. */
  readonly #removeAtExit = (): void => rmSync(this.#root, { recursive: true, force: true });
  #generation = 0;

  private constructor(root: string) {
    this.#root = root;
    this.path = join(root, 'config');
    this.statePath = join(root, 'state');
    process.once('exit', this.#removeAtExit);
  }

  static async create(): Promise<MountedDirectory> {
    const root = await mkdtemp(join(tmpdir(), 'fairlead-dev-'));
    const mounted = new MountedDirectory(root);
    await mkdir(mounted.path, { mode: 0o700 });
    await mkdir(mounted.statePath, { mode: 0o700 });
    return mounted;
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
    process.off('exit', this.#removeAtExit);
    await rm(this.#root, { recursive: true, force: true });
  }
}
