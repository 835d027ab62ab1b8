// The reference page of both kinds, written from the structural schemas: every field with type,
// default, constraints and description, then the rules between fields.

import { REMOTE_URL_MESSAGES } from '#core/config/remote-url.ts';
import { HOST_RULE_MESSAGES } from '#core/egress/host-rule.ts';

import type { KindDefinition } from './custom-resource.ts';
import { GROUP_VERSION } from './custom-resource.ts';
import type { StructuralSchema } from './structural-schema.ts';

const INTRODUCTION = `<!-- Generated from crds/*.ts by "npm run generate"; edits here are lost. -->
# Configuration reference

Both kinds belong to \`${GROUP_VERSION}\`. The API server, \`fairlead validate\` and \`fairlead dev\` check them alike:
an unknown field, a wrong value or a broken rule is refused with the path of the field.
\`kubectl explain mcpservers.spec\` shows the same texts.

- A **duration** is a number with a unit, or several: \`500ms\`, \`30s\`, \`1h30m\`.
${formLine('URL', REMOTE_URL_MESSAGES)}
${formLine('host rule', HOST_RULE_MESSAGES)}
`;

export function configurationDocs(definitions: readonly KindDefinition[]): string {
  return `${[INTRODUCTION, ...definitions.map(kindSection)].join('\n')}`;
}

function kindSection({
  kind,
  plural,
  shortName,
  description,
  nameMaxLength,
  spec,
  status,
}: KindDefinition): string {
  const rules = [...ruleLines(spec, 'spec')];
  return [
    `## ${kind}\n`,
    `${description}\n`,
    `\`kubectl get ${plural}\`, short \`${shortName}\`. The name has at most ${nameMaxLength} characters.\n`,
    `### ${kind} spec\n`,
    table(spec, 'spec'),
    `### Rules of ${kind}\n`,
    `${rules.join('\n')}\n`,
    `### ${kind} status\n`,
    'Written by the operator only.\n',
    table(status, 'status'),
  ].join('\n');
}

function table(schema: StructuralSchema, path: string): string {
  return `| Field | Type | Default | Constraints | Description |\n|---|---|---|---|---|\n${[...rows(schema, path)].join('\n')}\n`;
}

function* rows(schema: StructuralSchema, path: string): Generator<string> {
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const at = `${path}.${name}`;
    const isRequired = schema.required?.includes(name) ?? false;
    yield `| ${[code(at), typeName(member), defaultText(member, isRequired), constraints(member), cell(member.description ?? '')].join(' | ')} |`;
    yield* rows(member, at);
    if (member.items?.properties !== undefined) yield* rows(member.items, `${at}[]`);
  }
}

function typeName(schema: StructuralSchema): string {
  if (schema.form !== undefined) return schema.form;
  if (schema.items !== undefined) return `list of ${typeName(schema.items)}`;
  if (schema.additionalProperties !== undefined) return 'map of strings';
  if (schema.format === 'date-time') return 'time';
  return schema.type;
}

function defaultText(schema: StructuralSchema, isRequired: boolean): string {
  if (isRequired) return '**required**';
  return schema.default === undefined ? '' : code(JSON.stringify(schema.default));
}

function constraints(schema: StructuralSchema): string {
  const parts = [
    schema.enum === undefined ? undefined : `one of ${schema.enum.map(code).join(', ')}`,
    range(schema.minimum, schema.maximum, ''),
    range(schema.minItems, schema.maxItems, ' items'),
    range(schema.minProperties, schema.maxProperties, ' entries'),
    schema.listKind?.kind === 'set' ? 'no duplicates' : undefined,
    schema.listKind?.kind === 'map'
      ? `unique by ${schema.listKind.keys.map(code).join(', ')}`
      : undefined,
    schema.maxLength === undefined || schema.form !== undefined
      ? undefined
      : `at most ${schema.maxLength} characters`,
    valueConstraint(schema),
  ];
  return cell(parts.filter((part) => part !== undefined).join('; '));
}

/** The form of the value itself, or of each value inside a list or map. */
function valueConstraint(schema: StructuralSchema): string | undefined {
  const inner = schema.items ?? schema.additionalProperties;
  if (inner !== undefined) {
    if (inner.properties !== undefined) return undefined;
    const text = constraints(inner);
    return text === '' ? undefined : `each: ${text}`;
  }
  const own = (schema.rules ?? [])
    .filter(({ path }) => path === undefined && schema.type !== 'object')
    .map(({ message }) => message);
  const texts = new Set(schema.patternHint === undefined ? own : [schema.patternHint, ...own]);
  if (schema.form === 'URL' || schema.form === 'host rule') return undefined;
  if (schema.form === 'duration' && schema.patternHint !== undefined)
    texts.delete(schema.patternHint);
  return texts.size === 0 ? undefined : [...texts].join('; ');
}

function range(
  low: number | undefined,
  high: number | undefined,
  unit: string,
): string | undefined {
  if (low === undefined && high === undefined) return undefined;
  if (low === undefined) return `at most ${high}${unit}`;
  return high === undefined ? `at least ${low}${unit}` : `${low} to ${high}${unit}`;
}

function* ruleLines(schema: StructuralSchema, path: string): Generator<string> {
  for (const { message, path: field = '' } of schema.type === 'object' || schema.type === 'array'
    ? (schema.rules ?? [])
    : []) {
    yield `- ${code(path + field)} ${message}.`;
  }
  for (const [name, member] of Object.entries(schema.properties ?? {}))
    yield* ruleLines(member, `${path}.${name}`);
  if (schema.items !== undefined) yield* ruleLines(schema.items, `${path}[]`);
}

function code(text: string): string {
  return `\`${text}\``;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

/** What a form must be, once for all fields that have it. */
function formLine(name: string, messages: Readonly<Record<string, string>>): string {
  return `- A **${name}** ${Object.values(messages).join('; it ')}.`;
}
