// A bundler plugin: writes dist/THIRD-PARTY-NOTICES.txt with the licence of every package whose
// code went into the bundle.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import type { Plugin } from 'rolldown';

export function collectNotices(): Plugin {
  return {
    name: 'collect-notices',
    generateBundle(_options, bundle) {
      const roots = new Set<string>();
      for (const file of Object.values(bundle)) {
        if (file.type !== 'chunk') continue;
        for (const id of file.moduleIds) {
          const root = packageRoot(id);
          if (root !== undefined) roots.add(root);
        }
      }
      const notices = [...roots].map(readNotice).toSorted();
      // The bundle is read as ES modules wherever it is copied to.
      this.emitFile({ type: 'asset', fileName: 'package.json', source: '{"type":"module"}\n' });
      this.emitFile({
        type: 'asset',
        fileName: 'THIRD-PARTY-NOTICES.txt',
        source: notices.join(`\n${'-'.repeat(80)}\n\n`),
      });
    },
  };
}

/** The folder of the package that a module belongs to; undefined for our own. */
function packageRoot(id: string): string | undefined {
  const path = id.replace(/^\0/, '').split('?')[0] ?? '';
  if (!path.includes('/node_modules/')) return undefined;
  for (let folder = dirname(path); folder.includes('/node_modules/'); folder = dirname(folder)) {
    const file = join(folder, 'package.json');
    if (
      existsSync(file) &&
      (JSON.parse(readFileSync(file, 'utf8')) as { name?: string }).name !== undefined
    )
      return folder;
  }
  return undefined;
}

function readNotice(root: string): string {
  const { name, version, license } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as Record<string, unknown>;
  // Apache-2.0 asks for the NOTICE file besides the licence.
  const files = readdirSync(root).filter((entry) =>
    /^(licen[cs]e|copying|notice)(\.|$)/i.test(entry),
  );
  if (files.length === 0) throw new Error(`${String(name)} comes without the text of its licence`);
  const texts = files.map((file) => readFileSync(join(root, file), 'utf8').trim());
  const title = `${String(name)} ${String(version)}`;
  const licence = typeof license === 'string' ? license : 'see below';
  return `${title}\nLicence: ${licence}\n\n${texts.join('\n\n')}\n`;
}
