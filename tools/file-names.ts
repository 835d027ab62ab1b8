// Names and openings of files: kebab-case, no drawers (utils, helpers, common, manager), no index
// barrels, and every module of the product says in its first lines what it is for.
// Pure: text in, findings out.

import type { SourceTree } from './source-tree.ts';
import type { Fault } from './syntax-tree.ts';

const DRAWER = /^(utils?|helpers?|common|misc|shared|managers?|index)$/;
const DRAWER_PART = /(^|-)(utils?|helpers?|manager)$/;
const KEBAB = /^[a-z0-9]+(-[a-z0-9]+)*(\.(test|config))?\.(ts|mjs)$/;
const PRODUCT = /^(bin|core|crds|operator|sidecar|tools)\//;

export function findNameFaults(tree: SourceTree): Fault[] {
  return [...tree].flatMap(([path, text]) =>
    messages(path, text).map((message) => ({ path, line: 1, message })),
  );
}

function messages(path: string, text: string): string[] {
  const parts = path.split('/');
  const file = parts.at(-1) ?? '';
  const stems = parts.map((part) => part.replace(/\..*$/, ''));
  const found: string[] = [];
  const drawer = stems.find((stem) => DRAWER.test(stem) || DRAWER_PART.test(stem));
  if (drawer !== undefined) found.push(`"${drawer}" says nothing; name it after what it holds`);
  if (!KEBAB.test(file)) found.push('file names are kebab-case');
  if (PRODUCT.test(path) && !/^(#!.*\n)?\/\//.test(text)) {
    found.push('opens without the comment that says what the module is for');
  }
  return found;
}
