// The notices of everything that a bundle contains: name, version, license and the license's text
// of each package, as their licenses ask. A package without a license text fails the build.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

interface PackageJson {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/** `moduleIds` are absolute paths of bundled modules; those outside node_modules are ours. */
export async function renderThirdPartyNotices(moduleIds: Iterable<string>): Promise<string> {
  const directories = new Set<string>();
  for (const id of moduleIds) {
    const directory = packageDirectory(id);
    if (directory !== undefined) directories.add(directory);
  }
  const notices = await Promise.all([...directories].map(renderNotice));
  return [
    'Fairlead contains the following packages, under the licenses that are given with each.\n',
    ...notices.toSorted(),
  ].join(`\n${'-'.repeat(80)}\n\n`);
}

export function packageDirectory(moduleId: string): string | undefined {
  const path = moduleId.replaceAll('\\', '/').replace(/^\0/, '');
  return /^(.*\/node_modules\/(?:@[^/]+\/)?[^/@][^/]*)\//.exec(path)?.[1];
}

async function renderNotice(directory: string): Promise<string> {
  const text = await readFile(join(directory, 'package.json'), 'utf8');
  const { name, version, license } = JSON.parse(text) as PackageJson;
  const names = await readdir(directory);
  const licenseFile = names.find((file) => /^(licen[cs]e|copying)(\.(md|txt))?$/i.test(file));
  if (license === undefined || licenseFile === undefined) {
    throw new Error(`${name}@${version} comes without a license or its text (${directory})`);
  }
  const body = await readFile(join(directory, licenseFile), 'utf8');
  return `${name} ${version} (${license})\n\n${body.trim()}\n`;
}
