// Manifests in files, planned as the operator would plan them: every object validated as the API
// server does, every binding resolved and rendered by the operator's own functions. Complaints name
// file, line and field.

import {
  type McpBinding,
  type ObjectVerdict,
  type ValidateOptions,
  isFairleadKind,
  validateObject,
} from '#crds/validate-object.ts';
import {
  type BindingPlan,
  type Labels,
  planBinding,
} from '#operator/reconcile/mcp-binding/plan-binding.ts';
import { publicSuffixIssues } from '#operator/reconcile/mcp-server/judge-host-rules.ts';
import {
  type ConfigMapData,
  type JudgedServer,
  judgeServer,
} from '#operator/reconcile/mcp-server/judge-server.ts';

import {
  describeObject,
  loadManifests,
  type LoadedManifests,
  type LoadedObject,
  type ManifestIssue,
} from './load-manifests.ts';

export interface PlannedBinding {
  /** `namespace/name`. */
  readonly id: string;
  readonly revision: string;
  /** The bytes of config.json. */
  readonly text: string;
}

export interface PlanCounts {
  readonly files: number;
  readonly servers: number;
  readonly bindings: number;
  /** Objects of other kinds. */
  readonly others: number;
}

export type DirectoryPlan =
  | { readonly kind: 'unreadable'; readonly message: string }
  | {
      readonly kind: 'bad';
      readonly issues: readonly ManifestIssue[];
      readonly warnings: readonly ManifestIssue[];
      readonly counts: PlanCounts;
    }
  | {
      readonly kind: 'ok';
      readonly bindings: readonly PlannedBinding[];
      readonly warnings: readonly ManifestIssue[];
      readonly counts: PlanCounts;
    };

export async function planDirectory(
  paths: readonly string[],
  options: Pick<ValidateOptions, 'development'>,
): Promise<DirectoryPlan> {
  let loaded: LoadedManifests;
  try {
    loaded = await loadManifests(paths);
  } catch (error) {
    return { kind: 'unreadable', message: describeReadError(error) };
  }
  const own = loaded.objects.filter(({ input }) => isFairleadKind(input));
  if (own.length === 0 && loaded.issues.length === 0)
    return {
      kind: 'unreadable',
      message: `${paths.join(', ')}: no McpServer or McpBinding was found in ${String(loaded.files.length)} YAML or JSON files.`,
    };
  return planObjects(loaded, own, options);
}

function describeReadError(error: unknown): string {
  const { code, path, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return `${path ?? 'the path'} does not exist.`;
  if (code === 'EACCES' || code === 'EPERM') return `${path ?? 'the path'} cannot be read.`;
  return message;
}

interface Validated {
  readonly object: LoadedObject;
  readonly verdict: ObjectVerdict;
}

function planObjects(
  loaded: LoadedManifests,
  own: readonly LoadedObject[],
  options: Pick<ValidateOptions, 'development'>,
): DirectoryPlan {
  const validated = own.map((object) => ({
    object,
    verdict: validateObject(object.input, { ...options, unknownFields: 'refuse' }),
  }));
  const world = gatherWorld(loaded.objects, validated);
  const planned = validated.flatMap(({ object, verdict }) =>
    verdict.kind === 'ok' && verdict.object.kind === 'McpBinding'
      ? [planOne(world, object, verdict.object)]
      : [],
  );
  const issues = [
    ...loaded.issues,
    ...validated.flatMap(objectIssues),
    ...caIssues(world),
    ...planned.flatMap((plan) => planIssues(plan, world)),
  ];
  const warnings = planned.flatMap(strayWarnings);
  const counts = {
    files: new Set(loaded.files).size,
    servers: own.filter(({ kind }) => kind === 'McpServer').length,
    bindings: own.filter(({ kind }) => kind === 'McpBinding').length,
    others: loaded.objects.length - own.length,
  };
  if (issues.length > 0) return { kind: 'bad', issues, warnings, counts };
  return { kind: 'ok', bindings: planned.flatMap(renderedBinding), warnings, counts };
}

interface FileWorld {
  readonly servers: ReadonlyMap<
    string,
    { readonly object: LoadedObject; readonly judged: JudgedServer }
  >;
  readonly namespaceLabels: ReadonlyMap<string, Labels>;
}

function gatherWorld(objects: readonly LoadedObject[], validated: readonly Validated[]): FileWorld {
  const configMaps = new Map(
    objects
      .filter(isCore('ConfigMap'))
      .map((object) => [`${object.namespace}/${object.name}`, textMap(object.input['data'])]),
  );
  const namespaceLabels = new Map(
    objects
      .filter(isCore('Namespace'))
      .map((object) => [
        object.name,
        textMap((object.input['metadata'] as Record<string, unknown>)['labels']) ?? {},
      ]),
  );
  const servers = new Map<string, { object: LoadedObject; judged: JudgedServer }>();
  for (const { object, verdict } of validated) {
    if (object.kind !== 'McpServer') continue;
    servers.set(`${object.namespace}/${object.name}`, {
      object,
      judged: judgeServer(verdict, caData(configMaps, object, verdict)),
    });
  }
  return { servers, namespaceLabels };
}

function isCore(kind: string): (object: LoadedObject) => boolean {
  return (object) => object.apiVersion === 'v1' && object.kind === kind;
}

function caData(
  configMaps: ReadonlyMap<string, ConfigMapData>,
  object: LoadedObject,
  verdict: ObjectVerdict,
): ConfigMapData {
  if (verdict.kind !== 'ok' || verdict.object.kind !== 'McpServer') return undefined;
  const reference = verdict.object.spec.egress.caBundleRef;
  return reference === undefined
    ? undefined
    : configMaps.get(`${object.namespace}/${reference.name}`);
}

function textMap(value: unknown): Readonly<Record<string, string>> | undefined {
  if (value === null || typeof value !== 'object') return undefined;
  return Object.fromEntries(
    Object.entries(value).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
}

interface PlannedObject {
  readonly object: LoadedObject;
  readonly plan: BindingPlan;
}

function planOne(world: FileWorld, object: LoadedObject, binding: McpBinding): PlannedObject {
  const plan = planBinding({
    binding,
    namespace: object.namespace,
    namespaceLabels: world.namespaceLabels.get(object.namespace) ?? {},
    findServer: (namespace, name) => world.servers.get(`${namespace}/${name}`)?.judged,
  });
  return { object, plan };
}

function objectIssues({ object, verdict }: Validated): ManifestIssue[] {
  const issues =
    verdict.kind === 'invalid'
      ? verdict.issues
      : [
          ...verdict.unsupported,
          ...(verdict.object.kind === 'McpServer' ? publicSuffixIssues(verdict.object) : []),
        ];
  return issues.map(({ path, message }) => issueAt(object, path, message));
}

function caIssues(world: FileWorld): ManifestIssue[] {
  return [...world.servers.values()].flatMap(({ object, judged }) =>
    judged.resolvedRefs.status === 'False'
      ? [issueAt(object, 'spec.egress.caBundleRef', judged.resolvedRefs.message)]
      : [],
  );
}

/** References that fail; a server that is itself invalid has been complained of already. */
function planIssues({ object, plan }: PlannedObject, world: FileWorld): ManifestIssue[] {
  const issues = plan.servers.flatMap((server, index) => {
    const isFault = server.state === 'Excluded' && server.reason !== 'Suspended';
    const isKnown =
      server.reason === 'ServerNotAccepted' &&
      world.servers.has(`${server.namespace}/${server.name}`);
    return isFault && !isKnown
      ? [issueAt(object, `spec.servers[${String(index)}].name`, server.message ?? server.reason)]
      : [];
  });
  if (plan.config.kind === 'too-large')
    issues.push(
      issueAt(
        object,
        'spec.servers',
        `the config would have ${String(plan.config.bytes)} bytes, more than a ConfigMap holds`,
      ),
    );
  return issues;
}

function strayWarnings({ object, plan }: PlannedObject): ManifestIssue[] {
  return plan.strays.map(({ index, tool }) =>
    issueAt(
      object,
      `spec.servers[${String(index)}].tools.allow`,
      `${JSON.stringify(tool)} is not allowed by the server's own list, so it is never served`,
    ),
  );
}

function renderedBinding({ object, plan }: PlannedObject): PlannedBinding[] {
  const { config } = plan;
  return config.kind === 'ok'
    ? [{ id: `${object.namespace}/${object.name}`, revision: config.revision, text: config.text }]
    : [];
}

function issueAt(object: LoadedObject, path: string, message: string): ManifestIssue {
  return { ...object.positionOf(path), object: describeObject(object), path, message };
}
