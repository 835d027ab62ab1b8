// A tool's definition as agents of the other era may see it. Towards a legacy agent, an output
// schema with another root than an object is wrapped as `{result: …}`, since that era's
// structuredContent is an object; answers are wrapped by the same rule. Towards a modern agent,
// `execution` (tasks of the old era) is left out. Everything else stays, unknown members too.

import { isObject } from './control-request.ts';
import type { Members } from './control-request.ts';
import type { Side } from './upstream-types.ts';

type Era = Side['era'];

export function presentTool(definition: Members, serverEra: Era, agentEra: Era): Members {
  if (serverEra === agentEra) return definition;
  return agentEra === 'legacy' ? toLegacy(definition) : toModern(definition);
}

function toModern(definition: Members): Members {
  if (!Object.hasOwn(definition, 'execution')) return definition;
  const { execution: _, ...rest } = definition;
  return rest;
}

function toLegacy(definition: Members): Members {
  return wrapsOutput(definition)
    ? { ...definition, outputSchema: wrapSchema(definition['outputSchema'] as Members) }
    : definition;
}

/** Whether this tool's structuredContent is wrapped for legacy agents, whatever its value. */
export function wrapsOutput(definition: Members): boolean {
  const { outputSchema } = definition;
  return isObject(outputSchema) && outputSchema['type'] !== 'object';
}

/** Keywords whose value is data, in which `$ref` is a plain word. */
const DATA_KEYWORDS: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples']);
/** Keywords whose value maps names, which may look like keywords, to schemas. */
const MAP_KEYWORDS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
]);
const REF_KEYWORDS: ReadonlySet<string> = new Set(['$ref', '$dynamicRef']);
const NEW_ROOT = '#/properties/result';

function wrapSchema(schema: Members): Members {
  const dialect = schema['$schema'];
  return {
    ...(typeof dialect === 'string' ? { $schema: dialect } : {}),
    type: 'object',
    properties: { result: moveRefs(schema) },
    required: ['result'],
  };
}

/** Pointers into the document follow their targets to the new place. */
function moveRefs(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(moveRefs);
  // A subschema with an $id of its own is the root of its pointers already.
  if (!isObject(node) || isRootOfItsOwn(node['$id'])) return node;
  return mapValues(node, (key, value) => {
    if (REF_KEYWORDS.has(key) && typeof value === 'string') return moveRef(value);
    if (DATA_KEYWORDS.has(key)) return value;
    return MAP_KEYWORDS.has(key) && isObject(value)
      ? mapValues(value, (_name, schema) => moveRefs(schema))
      : moveRefs(value);
  });
}

function moveRef(ref: string): string {
  if (ref === '#') return NEW_ROOT;
  return ref.startsWith('#/') ? `${NEW_ROOT}${ref.slice(1)}` : ref;
}

function isRootOfItsOwn(id: unknown): boolean {
  return typeof id === 'string' && !id.startsWith('#');
}

function mapValues(node: Members, map: (key: string, value: unknown) => unknown): Members {
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, map(key, value)]));
}
