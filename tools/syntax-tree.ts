// Source text to syntax tree and a walk over it, for checks that the linter has no rule for.
// Uses the parser of the bundler, so that there is one reading of TypeScript fewer to differ.
// Types are skipped: `typeof fetch` in a type reaches nothing.

import { parseAst } from 'rolldown/parseAst';

export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

/** A finding of any of the text checks. */
export interface Fault {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

export function parseSource(path: string, text: string): SyntaxNode {
  const program: unknown = parseAst(text, { lang: path.endsWith('.mjs') ? 'js' : 'ts' }, path);
  if (!isNode(program)) throw new TypeError(`the parser gave no tree for ${path}`);
  return program;
}

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}

/** Every node that can run, parents first. `visit` also gets the parent. */
export function walk(
  root: SyntaxNode,
  visit: (node: SyntaxNode, parent: SyntaxNode) => void,
): void {
  const step = (node: SyntaxNode, parent: SyntaxNode): void => {
    if (isTypeOnly(node)) return;
    visit(node, parent);
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value]) {
        if (isNode(child)) step(child, node);
      }
    }
  };
  step(root, root);
}

const RUNNING_TS_NODES = new Set([
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSNonNullExpression',
  'TSTypeAssertion',
  'TSInstantiationExpression',
]);

function isTypeOnly(node: SyntaxNode): boolean {
  return node.type.startsWith('TS') && !RUNNING_TS_NODES.has(node.type);
}

export function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

/** The name of an identifier, or the value of a string literal. */
export function nameOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === 'Identifier' && typeof node.name === 'string') return node.name;
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value;
  return undefined;
}

/** `object.property` as text when both are plain names, also as `object['property']`. */
export function memberName(node: SyntaxNode): string | undefined {
  if (node.type !== 'MemberExpression') return undefined;
  const property = node.property;
  if (node.computed === true && isNode(property) && property.type !== 'Literal') return undefined;
  const object = isNode(node.object) ? objectName(node.object) : undefined;
  const name = nameOf(property);
  return object === undefined || name === undefined ? undefined : `${object}.${name}`;
}

/** `globalThis.x` reads as `x`. */
function objectName(node: SyntaxNode): string | undefined {
  if (node.type === 'MemberExpression') {
    const name = memberName(node);
    return name?.startsWith('globalThis.') === true ? name.slice('globalThis.'.length) : name;
  }
  return node.type === 'Identifier' ? nameOf(node) : undefined;
}

export interface ImportedName {
  /** Name in the other module; `*` for the namespace, `default` for the default export. */
  readonly name: string;
  readonly local: string;
  readonly isType: boolean;
}

export interface ImportEdge {
  readonly specifier: string;
  readonly offset: number;
  /** `import()` or `require()` of a literal. */
  readonly isDynamic: boolean;
  readonly names: readonly ImportedName[];
}

/** Imports, re-exports and dynamic imports of one file. */
export function importsOf(program: SyntaxNode): ImportEdge[] {
  const edges: ImportEdge[] = [];
  walk(program, (node) => {
    const edge = staticEdge(node) ?? dynamicEdge(node);
    if (edge !== undefined) edges.push(edge);
  });
  return edges;
}

function staticEdge(node: SyntaxNode): ImportEdge | undefined {
  if (!/^(Import|ExportNamed|ExportAll)Declaration$/.test(node.type)) return undefined;
  const specifier = nameOf(node.source);
  if (specifier === undefined) return undefined;
  const isType = node.importKind === 'type' || node.exportKind === 'type';
  const list: unknown[] = Array.isArray(node.specifiers) ? node.specifiers : [];
  const names = list.filter(isNode).map((item) => importedName(item, isType));
  if (node.type === 'ExportAllDeclaration') names.push({ name: '*', local: '*', isType });
  return { specifier, offset: node.start, isDynamic: false, names };
}

function importedName(item: SyntaxNode, isType: boolean): ImportedName {
  const local = nameOf(item.local) ?? '';
  const ownType = isType || item.importKind === 'type' || item.exportKind === 'type';
  if (item.type === 'ImportNamespaceSpecifier') return { name: '*', local, isType: ownType };
  if (item.type === 'ImportDefaultSpecifier') return { name: 'default', local, isType: ownType };
  const name = item.type === 'ExportSpecifier' ? local : (nameOf(item.imported) ?? local);
  return { name, local, isType: ownType };
}

function dynamicEdge(node: SyntaxNode): ImportEdge | undefined {
  const specifier = dynamicSpecifier(node);
  if (specifier === undefined) return undefined;
  const names = [{ name: '*', local: '*', isType: false }];
  return { specifier, offset: node.start, isDynamic: true, names };
}

function dynamicSpecifier(node: SyntaxNode): string | undefined {
  if (node.type === 'ImportExpression') return nameOf(node.source);
  if (node.type !== 'CallExpression') return undefined;
  const callee = isNode(node.callee) ? (memberName(node.callee) ?? nameOf(node.callee)) : undefined;
  const isLoader = callee === 'require' || callee === 'process.getBuiltinModule';
  return isLoader && Array.isArray(node.arguments) ? nameOf(node.arguments[0]) : undefined;
}
