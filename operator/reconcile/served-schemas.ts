// Whether the API server serves our kinds with the fields that this version relies on. An older CRD
// silently drops fields that it does not know, and a dropped limit is no limit: until the schema
// fits, nothing is reconciled and nothing is taken away.

import type { Clock } from '#core/clock.ts';
import { API_GROUP, API_VERSION, KIND_DEFINITIONS, KINDS } from '#crds/custom-resource.ts';
import type { KubeClient } from '#operator/kube/kube-client.ts';
import { errorFields } from '#operator/kube/error-fields.ts';
import type { WatchLog } from '#operator/watch/watch-log.ts';

const RETRY_MS = 5_000;

export interface ServedSchemasOptions {
  readonly client: Pick<KubeClient, 'getJson'>;
  readonly clock: Clock;
  readonly log: WatchLog;
  readonly signal: AbortSignal;
}

/** Waits, saying what is missing, until everything is there. */
export async function untilSchemasServed({
  client,
  clock,
  log,
  signal,
}: ServedSchemasOptions): Promise<void> {
  let last = '';
  for (;;) {
    try {
      const missing = findMissing(
        await client.getJson(`/openapi/v3/apis/${API_GROUP}/${API_VERSION}`, { signal }),
      );
      if (missing.length === 0) return;
      const said = missing.slice(0, 20).join(', ');
      if (said !== last)
        log.error(
          { event: 'crds', missing: said },
          'the CRDs lack fields that this version needs; apply its crds/*.yaml',
        );
      last = said;
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn(
        { event: 'crds', ...errorFields(error) },
        'the CRDs cannot be read yet; apply crds/*.yaml if they are missing',
      );
    }
    await clock.sleep(RETRY_MS, signal);
  }
}

type Schema = Readonly<Record<string, unknown>>;

/** Paths like `McpServer.spec.limits.maxConcurrency` that are in our schema and not in the served one. Pure. */
export function findMissing(document: unknown): string[] {
  const schemas = recordAt(recordAt(document, 'components'), 'schemas');
  return KINDS.flatMap((kind) => {
    const served = Object.values(schemas).find((schema) => isKind(schema, kind));
    if (served === undefined) return [kind];
    const properties = recordAt(served, 'properties');
    return (['spec', 'status'] as const).flatMap((part) => {
      const wanted = KIND_DEFINITIONS[kind][part] as unknown as Schema;
      return [...missingIn(wanted, recordAt(properties, part), `${kind}.${part}`)];
    });
  });
}

function isKind(schema: unknown, kind: string): boolean {
  const kinds = (schema as Schema | undefined)?.['x-kubernetes-group-version-kind'];
  return (
    Array.isArray(kinds) &&
    kinds.some(
      (entry: Schema) =>
        entry['group'] === API_GROUP && entry['version'] === API_VERSION && entry['kind'] === kind,
    )
  );
}

function* missingIn(wanted: Schema, served: unknown, path: string): Generator<string> {
  const servedProperties = recordAt(unwrap(served), 'properties');
  for (const [name, child] of Object.entries(recordAt(wanted, 'properties'))) {
    const at = `${path}.${name}`;
    if (servedProperties[name] === undefined) yield at;
    else yield* missingIn(child as Schema, servedProperties[name], at);
  }
  const items = wanted['items'];
  if (items !== undefined)
    yield* missingIn(items as Schema, unwrap(recordAt(unwrap(served), 'items')), `${path}[]`);
}

/** OpenAPI v3 puts a default beside an `allOf` of the schema proper. */
function unwrap(schema: unknown): Schema {
  const record = (schema ?? {}) as Schema;
  const all = record['allOf'];
  return Array.isArray(all) && all.length === 1 ? (all[0] as Schema) : record;
}

function recordAt(value: unknown, key: string): Schema {
  const member = (value as Schema | undefined | null)?.[key];
  return member !== null && typeof member === 'object' ? (member as Schema) : {};
}
