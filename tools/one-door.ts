// One door per danger: remote requests leave through core/egress only, the environment is read in
// settings.ts only, and time is read in core/clock.ts only. The linter's rules cannot be kept from
// being switched off by a comment and know neither `new Date()` nor single names of node:http, so
// the whole rule is here, in one table. Pure: text in, findings out.

import { importsOf, lineOf, memberName, nameOf, parseSource, walk } from './syntax-tree.ts';
import type { Fault, ImportEdge, ImportedName, SyntaxNode } from './syntax-tree.ts';
import type { SourceTree } from './source-tree.ts';

/** Not part of the product: they measure, fake and start things. */
const OUTSIDE = /^(test|tools|examples)\/|^[^/]*$/;

const NETWORK_DOOR = /^(core\/egress|operator\/kube)\//;
const KUBE_DOOR = /^operator\/kube\//;
const CLOCK_DOOR = /^core\/clock\.ts$/;
const SETTINGS_DOOR = /(^|\/)settings\.ts$/;
const NO_DOOR = /^(?!)/;

interface Rule {
  readonly door: RegExp;
  readonly message: string;
}

const NETWORK: Rule = {
  door: NETWORK_DOOR,
  message: 'remote requests go through core/egress (the API server: operator/kube)',
};
const UNGUARDED: Rule = {
  door: NO_DOOR,
  message: 'it connects past the checks of core/egress; not even core/egress may use it',
};
const KUBE: Rule = { door: KUBE_DOOR, message: 'the API server is reached through operator/kube' };
const ENVIRONMENT: Rule = {
  door: SETTINGS_DOOR,
  message: 'the environment is read by settings.ts and passed on as typed settings',
};
const CLOCK: Rule = { door: CLOCK_DOOR, message: 'time is read through a Clock (core/clock.ts)' };

/** Per module: which of its names are doors. `*` stands for every name. */
const IMPORT_RULES: Readonly<
  Record<string, { readonly names: readonly string[]; readonly rule: Rule }>
> = {
  undici: { names: ['*'], rule: NETWORK },
  http: { names: ['request', 'get', 'Agent', 'globalAgent', 'ClientRequest'], rule: NETWORK },
  https: { names: ['request', 'get', 'Agent', 'globalAgent'], rule: NETWORK },
  net: { names: ['connect', 'createConnection', 'Socket', 'Stream'], rule: NETWORK },
  tls: { names: ['connect', 'TLSSocket'], rule: NETWORK },
  http2: { names: ['*'], rule: NETWORK },
  dgram: { names: ['*'], rule: NETWORK },
  dns: { names: ['*'], rule: NETWORK },
  'dns/promises': { names: ['*'], rule: NETWORK },
  '@kubernetes/client-node': { names: ['*'], rule: KUBE },
  process: { names: ['env'], rule: ENVIRONMENT },
};

/** Names of undici that resolve, follow or proxy on their own. */
const UNGUARDED_UNDICI = ['EnvHttpProxyAgent', 'setGlobalDispatcher', 'getGlobalDispatcher'];

const MEMBER_RULES: Readonly<Record<string, Rule>> = {
  'process.env': ENVIRONMENT,
  'Date.now': CLOCK,
  'performance.now': CLOCK,
  'performance.timeOrigin': CLOCK,
  'process.hrtime': CLOCK,
  'interceptors.dns': UNGUARDED,
  'interceptors.redirect': UNGUARDED,
};

/** Globals of the runtime; a local of the same name is something else. */
const GLOBALS = ['fetch', 'WebSocket', 'EventSource'];

export function findDoorFaults(tree: SourceTree): Fault[] {
  return [...tree].flatMap(([path, text]) => (OUTSIDE.test(path) ? [] : fileFaults(path, text)));
}

interface Finding {
  readonly offset: number;
  readonly what: string;
  readonly rule: Rule;
}

function fileFaults(path: string, text: string): Fault[] {
  const program = parseSource(path, text);
  const imports = importsOf(program);
  const findings = [...imports.flatMap(importFindings), ...expressionFindings(program, imports)];
  return findings
    .filter(({ rule }) => !rule.door.test(path))
    .map(({ offset, what, rule }) => ({
      path,
      line: lineOf(text, offset),
      message: `${what}: ${rule.message}`,
    }));
}

function importFindings(edge: ImportEdge): Finding[] {
  const module = edge.specifier.replace(/^node:/, '');
  const doors = IMPORT_RULES[module] ?? IMPORT_RULES[packageOf(module)];
  const running = edge.names.filter((name) => !name.isType).map(({ name }) => name);
  const findings: Finding[] = edge.names.flatMap((imported) => renamedClock(edge, imported));
  const add = (name: string, rule: Rule): void => {
    findings.push({ offset: edge.offset, what: `${name} of ${edge.specifier}`, rule });
  };
  for (const name of running) {
    if (module === 'undici' && UNGUARDED_UNDICI.includes(name)) add(name, UNGUARDED);
    else if (doors !== undefined && isDoor(module, name, doors.names)) add(name, doors.rule);
  }
  return findings;
}

/** `@scope/name/dist/x.js` reaches as far as `@scope/name`. */
function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

/** Other members of `performance` read no clock, so it may be imported, but under its own name. */
function renamedClock(edge: ImportEdge, { name, local }: ImportedName): Finding[] {
  if (!/^(node:)?perf_hooks$/.test(edge.specifier) || edge.isDynamic) return [];
  if (name === 'performance' && local === 'performance') return [];
  if (name !== 'performance' && name !== '*' && name !== 'default') return [];
  return [{ offset: edge.offset, what: `${name} of ${edge.specifier} as ${local}`, rule: CLOCK }];
}

function isDoor(module: string, name: string, doors: readonly string[]): boolean {
  if (doors.includes('*') || doors.includes(name)) return true;
  // A namespace hides which name is used; only `process` is judged where a member is read.
  return (name === '*' || name === 'default') && module !== 'process';
}

function expressionFindings(program: SyntaxNode, imports: readonly ImportEdge[]): Finding[] {
  const declared = declaredNames(program, imports);
  const findings: Finding[] = [];
  walk(program, (node, parent) => {
    const what = doorExpression(node, parent, declared);
    if (what !== undefined) findings.push({ offset: node.start, ...what });
  });
  return findings;
}

function doorExpression(
  node: SyntaxNode,
  parent: SyntaxNode,
  declared: ReadonlySet<string>,
): Omit<Finding, 'offset'> | undefined {
  const member = memberName(node)?.replace(/^globalThis\./, '');
  const rule = member === undefined ? undefined : MEMBER_RULES[member];
  if (member !== undefined && rule !== undefined) return { what: member, rule };
  if (member !== undefined && memberName(node) !== member && GLOBALS.includes(member)) {
    return { what: `global ${member}`, rule: UNGUARDED };
  }
  if (isBareDate(node)) return { what: 'Date() of now', rule: CLOCK };
  return destructured(node) ?? globalRead(node, parent, declared);
}

/** `new Date()` and `Date()`; `new Date(value)` reads no clock. */
function isBareDate(node: SyntaxNode): boolean {
  if (node.type !== 'NewExpression' && node.type !== 'CallExpression') return false;
  const args: unknown[] = Array.isArray(node.arguments) ? node.arguments : [];
  return nameOf(node.callee) === 'Date' && (node.type === 'CallExpression' || args.length === 0);
}

/** `const { env } = process`, `const { now } = Date`. */
function destructured(node: SyntaxNode): Omit<Finding, 'offset'> | undefined {
  if (node.type !== 'VariableDeclarator') return undefined;
  const from = nameOf(node.init);
  if (from === undefined) return undefined;
  for (const key of patternKeys(node.id)) {
    const rule = MEMBER_RULES[`${from}.${key}`];
    if (rule !== undefined) return { what: `${from}.${key}`, rule };
  }
  return undefined;
}

function patternKeys(pattern: unknown): string[] {
  const { type, properties } = (pattern ?? {}) as { type?: unknown; properties?: unknown };
  if (type !== 'ObjectPattern' || !Array.isArray(properties)) return [];
  return properties.flatMap((property: { key?: unknown }) => nameOf(property.key) ?? []);
}

function globalRead(
  node: SyntaxNode,
  parent: SyntaxNode,
  declared: ReadonlySet<string>,
): Omit<Finding, 'offset'> | undefined {
  const name = node.type === 'Identifier' ? nameOf(node) : undefined;
  if (name === undefined || !GLOBALS.includes(name) || declared.has(name)) return undefined;
  const isProperty =
    parent.type === 'MemberExpression' && parent.property === node && parent.computed !== true;
  const isKey =
    'key' in parent && parent.key === node && parent.computed !== true && parent.shorthand !== true;
  return isProperty || isKey ? undefined : { what: `global ${name}`, rule: UNGUARDED };
}

/** Names that the file binds anywhere: imports, variables, parameters, functions, classes. */
function declaredNames(program: SyntaxNode, imports: readonly ImportEdge[]): ReadonlySet<string> {
  const names = new Set(imports.flatMap((edge) => edge.names.map(({ local }) => local)));
  walk(program, (node) => {
    for (const bound of [node.id, ...(Array.isArray(node.params) ? node.params : [])]) {
      for (const name of [nameOf(bound), ...patternKeys(bound)]) {
        if (name !== undefined) names.add(name);
      }
    }
  });
  return names;
}
