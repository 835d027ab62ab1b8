// What to run and how to add it up: pure parts of test/run.ts.

export const LAYERS = ['unit', 'apiserver', 'proxies', 'node'] as const;
export type Layer = (typeof LAYERS)[number];

export const USAGE = `usage: node test/run.ts unit|apiserver|proxies|node|all [PATH_PART…] [-- NODE_TEST_FLAG…]
  PATH_PART        only files whose path contains one of them
  NODE_TEST_FLAG   for node --test, such as --test-name-pattern=drain`;

export interface RunRequest {
  readonly layer: Layer | 'all';
  readonly pathParts: readonly string[];
  readonly nodeFlags: readonly string[];
}

/** Undefined when the words make no sense. npm drops the first `--`, so flags count without it. */
export function parseArguments(words: readonly string[]): RunRequest | undefined {
  const [layer, ...rest] = words;
  if (layer !== 'all' && !LAYERS.some((name) => name === layer)) return undefined;
  const split = rest.indexOf('--');
  const own = split === -1 ? rest : rest.slice(0, split);
  const isFlag = (word: string): boolean => word.startsWith('--');
  return {
    layer: layer as Layer | 'all',
    pathParts: own.filter((word) => !isFlag(word)),
    nodeFlags: [...own.filter(isFlag), ...(split === -1 ? [] : rest.slice(split + 1))],
  };
}

/** The folder decides; `path` is relative to the root, with forward slashes. */
export function layerOf(path: string): Layer {
  const folder = path.split('/')[1];
  return LAYERS.find((layer) => layer === folder) ?? 'unit';
}

export function selectFiles(
  files: readonly string[],
  layer: Layer,
  pathParts: readonly string[],
): string[] {
  const isWanted = (path: string): boolean =>
    pathParts.length === 0 || pathParts.some((part) => path.includes(part));
  return files.filter((path) => layerOf(path) === layer && isWanted(path)).toSorted();
}

export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const NO_TESTS: Totals = { passed: 0, failed: 0, skipped: 0 };

export function addTotals(a: Totals, b: Totals): Totals {
  return {
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    skipped: a.skipped + b.skipped,
  };
}

/** `12 passed, 0 failed`, and the skipped ones only when there are any. */
export function renderTotals({ passed, failed, skipped }: Totals): string {
  const text = `${passed} passed, ${failed} failed`;
  return skipped === 0 ? text : `${text}, ${skipped} skipped`;
}

export function renderSeconds(ms: number): string {
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
