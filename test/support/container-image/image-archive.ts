// A container image as the archive that containerd and Docker import, written from plain files: no
// container engine, no registry.

import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { posix } from 'node:path';

import type { ImageFile } from './image-files.ts';
import { encodeTar } from './tar.ts';
import type { TarEntry } from './tar.ts';

export interface ArchiveOptions {
  /** Such as `localhost/fairlead:test`. */
  readonly name: string;
  readonly files: readonly ImageFile[];
  readonly entrypoint: readonly string[];
  readonly user: string;
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

export async function writeImageArchive(path: string, options: ArchiveOptions): Promise<void> {
  const layer = encodeTar(await layerEntries(options.files));
  const digest = sha256(layer);
  const config = Buffer.from(
    JSON.stringify({
      architecture: ARCHITECTURES[process.arch],
      os: 'linux',
      config: { Entrypoint: options.entrypoint, User: options.user },
      rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
    }),
  );
  const configName = `${sha256(config)}.json`;
  const manifest = [{ Config: configName, RepoTags: [options.name], Layers: [`${digest}.tar`] }];
  const archive = encodeTar([
    { name: configName, mode: 0o644, content: config },
    { name: `${digest}.tar`, mode: 0o644, content: layer },
    { name: 'manifest.json', mode: 0o644, content: Buffer.from(JSON.stringify(manifest)) },
  ]);
  await writeFile(path, archive);
}

async function layerEntries(files: readonly ImageFile[]): Promise<TarEntry[]> {
  const folders = new Set<string>();
  for (const { target } of files) {
    for (let at = posix.dirname(target); at !== '/'; at = posix.dirname(at)) folders.add(at);
  }
  const entries: TarEntry[] = [...folders]
    .toSorted()
    .map((folder) => ({ name: `${folder.slice(1)}/`, mode: 0o755, content: Buffer.alloc(0) }));
  for (const { source, target, mode } of files) {
    entries.push({ name: target.slice(1), mode, content: await readFile(source) });
  }
  return entries;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
