// Which folder may import which: crds -> core; operator -> crds, core; sidecar -> core;
// core -> nothing. bin loads programs by dynamic import only, so that a subcommand loads its own
// code and no other. Across folders an import is written with the folder's alias, never `../`.
// A folder stays in core/ only while both programs reach it. Pure: text in, findings out.

import { importsOf, lineOf, parseSource } from './syntax-tree.ts';
import type { Fault, ImportEdge } from './syntax-tree.ts';
import type { SourceTree } from './source-tree.ts';

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  core: [],
  crds: ['core'],
  operator: ['crds', 'core'],
  sidecar: ['core'],
  bin: ['core'],
  // Examples are copied by users: they know packages only.
  examples: [],
};
const DYNAMIC_ALLOWED: Readonly<Record<string, readonly string[]>> = {
  bin: ['core', 'operator', 'sidecar', 'crds'],
};

interface ResolvedImport {
  readonly from: string;
  readonly line: number;
  readonly edge: ImportEdge;
  /** Path from the root; undefined for packages and builtins. */
  readonly to: string | undefined;
}

/** `aliases`: folders that package.json `imports` gives a name, such as `core` for `#core/*`. */
export function findDirectionFaults(tree: SourceTree, aliases: ReadonlySet<string>): Fault[] {
  const imports = resolveImports(tree);
  return [
    ...imports.flatMap((item) => directionFaults(item, aliases)),
    ...unsharedCoreFolders(tree, imports),
  ];
}

/** The folders behind package.json's `imports`. */
export function aliasedFolders(packageJson: unknown): ReadonlySet<string> {
  const { imports } = packageJson as { readonly imports?: Readonly<Record<string, string>> };
  const targets = Object.values(imports ?? {});
  return new Set(targets.map((target) => target.replace(/^\.\//, '').replace(/\/\*$/, '')));
}

function resolveImports(tree: SourceTree): ResolvedImport[] {
  return [...tree].flatMap(([from, text]) =>
    importsOf(parseSource(from, text)).map((edge) => ({
      from,
      line: lineOf(text, edge.offset),
      edge,
      to: resolve(from, edge.specifier),
    })),
  );
}

function resolve(from: string, specifier: string): string | undefined {
  if (specifier.startsWith('#')) return specifier.slice(1);
  if (!specifier.startsWith('.')) return undefined;
  return new URL(specifier, `file:///${from}`).pathname.slice(1);
}

function directionFaults(item: ResolvedImport, aliases: ReadonlySet<string>): Fault[] {
  const { from, line, edge, to } = item;
  if (to === undefined) return [];
  const fault = (message: string): Fault[] => [{ path: from, line, message }];
  const [source, target] = [topFolder(from), topFolder(to)];
  const isRelative = edge.specifier.startsWith('.');
  if (isRelative && folderOf(from) !== folderOf(to) && aliases.has(target)) {
    return fault(`${edge.specifier}: across folders import "#${to}"`);
  }
  const allowed = (edge.isDynamic ? DYNAMIC_ALLOWED[source] : undefined) ?? ALLOWED[source];
  const isFree = allowed === undefined || source === target || !to.includes('/');
  if (isFree || allowed.includes(target)) return [];
  return fault(`${edge.specifier}: ${source}/ must not import ${target}/`);
}

function topFolder(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : '';
}

function folderOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
}

/** core/ must not become a drawer: what one program alone uses belongs to that program. */
function unsharedCoreFolders(tree: SourceTree, imports: readonly ResolvedImport[]): Fault[] {
  const folders = new Set(
    [...tree.keys()].filter((path) => /^core\/[^/]+\//.test(path)).map(folderOf),
  );
  const reached = {
    operator: reachable(imports, /^(operator|crds)\//),
    sidecar: reachable(imports, /^sidecar\//),
  };
  const faults: Fault[] = [];
  for (const folder of folders) {
    const missing = Object.entries(reached).filter(
      ([, files]) => ![...files].some((file) => folderOf(file) === folder),
    );
    for (const [program] of missing) {
      faults.push({
        path: folder,
        line: 1,
        message: `no file of ${program} reaches ${folder}/; core/ is for what both programs use`,
      });
    }
  }
  return faults;
}

function reachable(imports: readonly ResolvedImport[], start: RegExp): ReadonlySet<string> {
  const targets = Map.groupBy(imports, ({ from }) => from);
  const seen = new Set<string>();
  const queue = [...targets.keys()].filter((path) => start.test(path));
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    queue.push(...(targets.get(path) ?? []).flatMap(({ to }) => to ?? []));
  }
  return seen;
}
