// Everything that is generated from the schemas: the CRDs, the JSON Schema of the rendered
// sidecar config, the reference documentation. generatedFiles() only computes; tools/generate.ts
// writes, and a check compares, so that a drift fails.

import { stringify } from 'yaml';
import { z } from 'zod';

import { CONFIG_VERSION, sidecarConfigSchema } from '#core/config/sidecar-config.ts';

import { configurationDocs } from './configuration-docs.ts';
import { API_GROUP, KIND_DEFINITIONS, customResourceDefinition } from './custom-resource.ts';
import type { KindDefinition } from './custom-resource.ts';

const HEADER = '# Generated from crds/*.ts by "npm run generate"; edits here are lost.\n';

/** Paths from the project's root, and their text. */
export async function generatedFiles(): Promise<Map<string, string>> {
  const definitions = Object.values(KIND_DEFINITIONS);
  return new Map([
    ...definitions.map((definition): [string, string] => [
      `crds/${definition.plural}.${API_GROUP}.yaml`,
      crdText(definition),
    ]),
    ['docs/configuration.md', configurationDocs(definitions)],
    ['docs/schemas/sidecar-config.json', configSchemaText()],
  ]);
}

function crdText(definition: KindDefinition): string {
  return (
    HEADER +
    stringify(customResourceDefinition(definition), { aliasDuplicateObjects: false, lineWidth: 0 })
  );
}

/** For readers of any language; the relations between fields are checked in code besides. */
function configSchemaText(): string {
  const schema = z.toJSONSchema(sidecarConfigSchema, { target: 'draft-2020-12', io: 'input' });
  const { $schema, ...rest } = schema;
  const named = {
    $schema,
    $id: `https://fairlead.dev/schemas/sidecar-config.${CONFIG_VERSION}.json`,
    title: 'Fairlead sidecar config',
    ...rest,
  };
  return `${JSON.stringify(named, null, 2)}\n`;
}
