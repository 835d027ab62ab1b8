// Reads Kubernetes manifests from files the way kubectl does: directories recursively, several
// documents in a file, List kinds. Remembers where each field stands, so that every complaint can
// name file, line and column. Objects of other kinds are left alone.

import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  type Tags,
} from 'yaml';

export const PROCESSES_FILE = 'fairlead-dev.yaml';
/** As in `kubectl apply -f -`. */
export const STDIN = '-';
const MANIFEST = /\.(ya?ml|json)$/;
const MAX_FILE_BYTES = 4 * 1024 * 1024;

export interface Position {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
}

export interface ManifestIssue extends Position {
  /** `McpServer tools/github`; empty when no object could be read. */
  readonly object: string;
  /** `spec.limits.maxConcurrency`; empty for the whole object or file. */
  readonly path: string;
  readonly message: string;
}

export interface LoadedObject {
  readonly input: Readonly<Record<string, unknown>>;
  readonly kind: string;
  readonly apiVersion: string;
  readonly namespace: string;
  readonly name: string;
  /** Where the field stands, or the nearest one around it that is there. */
  positionOf(path: string): Position;
}

export interface LoadedManifests {
  readonly files: readonly string[];
  readonly objects: readonly LoadedObject[];
  readonly issues: readonly ManifestIssue[];
}

/** Throws the file system's error when a path can't be read. */
export async function loadManifests(paths: readonly string[]): Promise<LoadedManifests> {
  const files = (await Promise.all(paths.map((path) => listFiles(path)))).flat().toSorted();
  const objects: LoadedObject[] = [];
  const issues: ManifestIssue[] = [];
  for (const file of new Set(files)) {
    const loaded = parseManifests(file, await readManifest(file));
    objects.push(...loaded.objects);
    issues.push(...loaded.issues);
  }
  return { files, objects, issues: [...issues, ...findDuplicates(objects)] };
}

/** `parents`: real paths of the directories around it, so that a link to one of them ends there. */
async function listFiles(path: string, parents: readonly string[] = []): Promise<string[]> {
  if (path === STDIN) return [path];
  if (!(await stat(path)).isDirectory()) return [path];
  const real = await realpath(path);
  if (parents.includes(real)) return [];
  const found: string[] = [];
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (isLeftOut(entry.name)) continue;
    const child = join(path, entry.name);
    const isDirectory =
      entry.isDirectory() || (entry.isSymbolicLink() && (await isLinkedDirectory(child)));
    if (isDirectory) found.push(...(await listFiles(child, [...parents, real])));
    else if (MANIFEST.test(entry.name)) found.push(child);
  }
  return found;
}

function isLeftOut(name: string): boolean {
  return name.startsWith('.') || name === 'node_modules' || name === PROCESSES_FILE;
}

async function isLinkedDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

async function readManifest(file: string): Promise<string> {
  if (file === STDIN) return text(process.stdin);
  const { size } = await stat(file);
  if (size > MAX_FILE_BYTES)
    throw new RangeError(`${file} is over ${String(MAX_FILE_BYTES)} bytes`);
  return readFile(file, 'utf8');
}

interface ParsedFile {
  readonly objects: readonly LoadedObject[];
  readonly issues: readonly ManifestIssue[];
}

/** Pure: the objects in one file's text. */
export function parseManifests(file: string, yaml: string): ParsedFile {
  const lines = new LineCounter();
  const documents = parseAllDocuments(yaml, {
    version: '1.1',
    merge: true,
    lineCounter: lines,
    customTags: (tags) => tags.filter(isKubectlTag),
  });
  const objects: LoadedObject[] = [];
  const issues: ManifestIssue[] = [];
  for (const document of 'empty' in documents ? [] : documents) {
    const fault = document.errors[0];
    if (fault !== undefined) {
      issues.push({
        ...positionAt(file, lines, fault.pos[0]),
        object: '',
        path: '',
        message: `is not valid YAML: ${firstLine(fault.message)}`,
      });
      continue;
    }
    const read = readDocument({ file, lines, document });
    objects.push(...read.objects);
    issues.push(...read.issues);
  }
  return { objects, issues };
}

function readDocument(source: Source): ParsedFile {
  let input: unknown;
  try {
    input = source.document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    const detail = error instanceof Error ? firstLine(error.message) : 'it cannot be read';
    return oneIssue(source, '', `is not valid YAML: ${detail}`);
  }
  if (input === null || input === undefined) return { objects: [], issues: [] };
  return readObjects(source, input, '');
}

/** kubectl reads YAML 1.1, but leaves timestamps and sexagesimal numbers as the text that they are. */
function isKubectlTag(tag: Tags[number]): boolean {
  return (
    typeof tag === 'string' ||
    !(tag.tag.endsWith(':timestamp') || ('format' in tag && tag.format === 'TIME'))
  );
}

interface Source {
  readonly file: string;
  readonly lines: LineCounter;
  readonly document: Document.Parsed;
}

function readObjects(source: Source, input: unknown, path: string): ParsedFile {
  if (!isRecord(input)) return oneIssue(source, path, 'must be a Kubernetes object');
  const { kind, apiVersion, items } = input;
  if (typeof kind !== 'string' || typeof apiVersion !== 'string')
    return oneIssue(source, path, 'must have apiVersion and kind');
  if (kind.endsWith('List') && Array.isArray(items)) {
    const read = items.map((item, index) =>
      readObjects(source, item, `${path === '' ? '' : `${path}.`}items[${String(index)}]`),
    );
    return {
      objects: read.flatMap(({ objects }) => objects),
      issues: read.flatMap(({ issues }) => issues),
    };
  }
  const metadata = isRecord(input['metadata']) ? input['metadata'] : {};
  const object: LoadedObject = {
    input,
    kind,
    apiVersion,
    namespace: typeof metadata['namespace'] === 'string' ? metadata['namespace'] : 'default',
    name: typeof metadata['name'] === 'string' ? metadata['name'] : '',
    positionOf: (field) =>
      positionOfField(source, path === '' ? field : field === '' ? path : `${path}.${field}`),
  };
  return { objects: [object], issues: [] };
}

function oneIssue(source: Source, path: string, message: string): ParsedFile {
  return { objects: [], issues: [{ ...positionOfField(source, path), object: '', path, message }] };
}

function positionOfField({ file, lines, document }: Source, path: string): Position {
  let node: unknown = document.contents;
  let start = rangeStart(node);
  let rest = path;
  while (rest !== '') {
    const step = nextStep(node, rest);
    if (step === undefined) break;
    ({ node, rest } = step);
    start = step.start ?? start;
  }
  return positionAt(file, lines, start ?? 0);
}

interface Step {
  readonly node: unknown;
  readonly rest: string;
  readonly start: number | undefined;
}

/** Keys may contain dots (labels), so the longest key that fits is taken. */
function nextStep(node: unknown, path: string): Step | undefined {
  const index = /^\[(\d+)\]\.?/.exec(path);
  if (index !== null && isSeq(node)) {
    const item = node.items[Number(index[1])];
    return item === undefined
      ? undefined
      : { node: item, rest: path.slice(index[0].length), start: rangeStart(item) };
  }
  if (!isMap(node)) return undefined;
  const fitting = node.items
    .filter((pair) => isScalar(pair.key) && startsWithKey(path, String(pair.key.value)))
    .toSorted(
      (a, b) =>
        String((b.key as { value: unknown }).value).length -
        String((a.key as { value: unknown }).value).length,
    );
  const pair = fitting[0];
  if (pair === undefined || !isScalar(pair.key)) return undefined;
  return {
    node: pair.value,
    rest: path.slice(String(pair.key.value).length).replace(/^\./, ''),
    start: rangeStart(pair.key),
  };
}

function startsWithKey(path: string, key: string): boolean {
  return path.startsWith(key) && ['.', '[', undefined].includes(path[key.length]);
}

function rangeStart(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}

function positionAt(file: string, lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { file, line: Math.max(1, line), column: Math.max(1, col) };
}

function findDuplicates(objects: readonly LoadedObject[]): ManifestIssue[] {
  const seen = new Map<string, LoadedObject>();
  const issues: ManifestIssue[] = [];
  for (const object of objects) {
    const key = `${object.apiVersion.split('/')[0] ?? ''} ${object.kind} ${object.namespace}/${object.name}`;
    const first = seen.get(key);
    if (first === undefined || object.name === '') {
      seen.set(key, object);
      continue;
    }
    const { file, line } = first.positionOf('metadata.name');
    issues.push({
      ...object.positionOf('metadata.name'),
      object: describeObject(object),
      path: 'metadata.name',
      message: `is defined already in ${file}:${String(line)}`,
    });
  }
  return issues;
}

export function describeObject({
  kind,
  namespace,
  name,
}: Pick<LoadedObject, 'kind' | 'namespace' | 'name'>): string {
  return `${kind} ${namespace}/${name === '' ? '?' : name}`;
}

function firstLine(message: string): string {
  return (message.split('\n')[0] ?? message).replace(/ at line \d+, column \d+:?$/, '');
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
