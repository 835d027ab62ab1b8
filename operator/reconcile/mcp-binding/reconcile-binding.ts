// Reconciles one McpBinding: gather, plan, apply the ConfigMap when it differs, write the status
// when it differs. What can't be known ends the run and is tried again; it never takes anything
// away. A second run in an unchanged world writes nothing.

import type { Clock } from '#core/clock.ts';
import { CONFIG_FILE } from '#core/config/sidecar-config.ts';
import { GROUP_VERSION } from '#crds/custom-resource.ts';
import type { McpBinding } from '#crds/validate-object.ts';
import type { KubeClient } from '#operator/kube/kube-client.ts';
import {
  CONFIG_MAPS,
  type KubeObject,
  type ObjectRef,
  namespacedKey,
} from '#operator/kube/kube-object.ts';
import {
  type CachedConfigMap,
  type CachedResource,
  digestData,
} from '#operator/reconcile/cached-objects.ts';
import {
  buildConditions,
  conditionTime,
  no,
  type Verdict,
  yes,
} from '#operator/reconcile/conditions.ts';
import { judgeSpec, type JudgedServer } from '#operator/reconcile/mcp-server/judge-server.ts';
import { MCP_BINDINGS } from '#operator/reconcile/resources.ts';
import { asBinding, serversOf, type World } from '#operator/reconcile/world.ts';
import { type StatusWriter, writeStatus } from '#operator/reconcile/write-status.ts';
import type { Reconcile, ReconcileContext } from '#operator/watch/controller-loop.ts';

import { type BindingPlan, judgeSize, planBinding, type PlannedServer } from './plan-binding.ts';

export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
export const BINDING_LABEL = 'fairlead.dev/binding';
export const MANAGED_BY = 'fairlead';
/** Selects the ConfigMaps that are ours. */
export const OWNED_SELECTOR = `${MANAGED_BY_LABEL}=${MANAGED_BY},${BINDING_LABEL}`;

export interface BindingReconcilerOptions extends StatusWriter {
  readonly world: World;
  readonly client: Pick<KubeClient, 'applyStatus' | 'apply' | 'mergePatch'>;
  readonly clock: Clock;
}

export function createBindingReconciler(options: BindingReconcilerOptions): Reconcile {
  return async (key, context) => {
    const { world } = options;
    const object = world.binding(key);
    // Its ConfigMap goes with it: the API server's garbage collector follows the owner reference.
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return undefined;
    const binding = asBinding(object);
    if (binding === undefined) await writeInvalid(options, object, context);
    else await reconcileValid(options, { object, binding, context });
    return undefined;
  };
}

/** An object from before a stricter schema: the last good config stays. */
async function writeInvalid(
  options: BindingReconcilerOptions,
  object: CachedResource,
  { signal }: ReconcileContext,
): Promise<void> {
  const pending: Verdict = {
    status: 'Unknown',
    reason: 'Pending',
    message: 'The spec is not valid; the last good config stays in use.',
  };
  const verdicts = {
    accepted: judgeSpec(object.verdict),
    resolvedRefs: pending,
    programmed: pending,
    isStalled: true,
  };
  const { generation = 0 } = object.metadata;
  const conditions = buildConditions(verdicts, {
    previous: object.status.conditions,
    generation,
    now: conditionTime(options.clock.nowMs()),
  });
  const status = { ...object.status, observedGeneration: generation, conditions };
  await writeStatus(options, { resource: MCP_BINDINGS, object, status, signal });
}

interface ValidRun {
  readonly object: CachedResource;
  readonly binding: McpBinding;
  readonly context: ReconcileContext;
}

async function reconcileValid(
  options: BindingReconcilerOptions,
  { object, binding, context }: ValidRun,
): Promise<void> {
  const { signal } = context;
  const plan = await gatherAndPlan(options.world, { object, binding, signal });
  const programmed = await applyConfig(options, { object, plan, signal });
  const status = planBindingStatus({
    object,
    plan,
    programmed,
    now: conditionTime(options.clock.nowMs()),
  });
  await writeStatus(options, { resource: MCP_BINDINGS, object, status, signal });
}

async function gatherAndPlan(
  world: World,
  {
    object,
    binding,
    signal,
  }: {
    readonly object: CachedResource;
    readonly binding: McpBinding;
    readonly signal: AbortSignal;
  },
): Promise<BindingPlan> {
  const { namespace = '' } = object.metadata;
  const namespaceLabels = world.namespaceLabels(namespace);
  if (namespaceLabels === undefined) throw new Error(`namespace ${namespace} is not known yet`);
  const judged = new Map<string, JudgedServer | undefined>();
  for (const key of serversOf(object)) judged.set(key, await world.judge(key, signal));
  return planBinding({
    binding,
    namespace,
    namespaceLabels,
    findServer: (ns, name) => judged.get(namespacedKey(name, ns)),
  });
}

/** The ConfigMap as it must be. Pure. */
export function renderConfigMap(object: CachedResource, text: string): KubeObject {
  const { name, namespace = '', uid = '' } = object.metadata;
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: `fairlead-${name}`,
      namespace,
      labels: { [MANAGED_BY_LABEL]: MANAGED_BY, [BINDING_LABEL]: name },
      ownerReferences: [
        {
          apiVersion: GROUP_VERSION,
          kind: 'McpBinding',
          name,
          uid,
          controller: true,
          blockOwnerDeletion: false,
        },
      ],
    },
    data: { [CONFIG_FILE]: text },
  };
}

/** True when the live object has everything that we set, and no data of anybody else. Pure. */
export function isAsDesired(live: CachedConfigMap | undefined, desired: KubeObject): boolean {
  if (live === undefined || live.dataDigest !== digestData(desired)) return false;
  const labels = Object.entries(desired.metadata.labels ?? {});
  if (!labels.every(([key, value]) => live.metadata.labels?.[key] === value)) return false;
  const [owner] = desired.metadata.ownerReferences ?? [];
  return (live.metadata.ownerReferences ?? []).some(
    ({ uid, controller }) => uid === owner?.uid && controller === true,
  );
}

interface ApplyRun {
  readonly object: CachedResource;
  readonly plan: BindingPlan;
  readonly signal: AbortSignal;
}

async function applyConfig(
  options: BindingReconcilerOptions,
  { object, plan, signal }: ApplyRun,
): Promise<Verdict> {
  const { world, client } = options;
  const tooLarge = judgeSize(plan.config);
  if (tooLarge !== undefined || plan.config.kind !== 'ok') return tooLarge ?? no('TooLarge', '');
  const desired = renderConfigMap(object, plan.config.text);
  const { name, namespace = '' } = desired.metadata;
  const key = namespacedKey(name, namespace);
  const live = world.ownedConfigMap(key);
  if (live === undefined && isForeign(world.configMap(key), object)) {
    return no(
      'ApplyConflict',
      `A ConfigMap ${name} exists already and belongs to somebody else. Delete or rename it.`,
    );
  }
  if (!isAsDesired(live, desired)) {
    await client.apply(CONFIG_MAPS, desired, { signal });
    await removeForeignData(options, {
      live,
      ref: { resource: CONFIG_MAPS, name, namespace },
      signal,
    });
  }
  return yes('Programmed', `ConfigMap ${name} has revision ${plan.config.revision.slice(0, 12)}.`);
}

/** Without our labels, and not owned by this binding. */
function isForeign(existing: KubeObject | undefined, binding: CachedResource): boolean {
  if (existing === undefined) return false;
  return !(existing.metadata.ownerReferences ?? []).some(({ uid }) => uid === binding.metadata.uid);
}

/** Server-side apply removes only what we once set; a key that somebody added has to be named to go. */
async function removeForeignData(
  { client }: BindingReconcilerOptions,
  {
    live,
    ref,
    signal,
  }: {
    readonly live: CachedConfigMap | undefined;
    readonly ref: ObjectRef;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const foreign = (live?.dataKeys ?? []).filter((key) => key !== CONFIG_FILE);
  if (foreign.length === 0) return;
  await client.mergePatch(
    ref,
    { data: Object.fromEntries(foreign.map((key) => [key, null])), binaryData: null },
    { signal },
  );
}

export interface BindingStatusInput {
  readonly object: CachedResource;
  readonly plan: BindingPlan;
  readonly programmed: Verdict;
  readonly now: string;
}

/** Pure. */
export function planBindingStatus({
  object,
  plan,
  programmed,
  now,
}: BindingStatusInput): CachedResource['status'] {
  const generation = object.metadata.generation ?? 0;
  const accepted = judgeSpec(object.verdict);
  const conditions = buildConditions(
    {
      accepted: withStrays(accepted, plan),
      resolvedRefs: plan.resolvedRefs,
      programmed,
      isStalled: accepted.status === 'False' || programmed.reason === 'TooLarge',
    },
    { previous: object.status.conditions, generation, now },
  );
  const revision =
    plan.config.kind === 'ok' ? plan.config.revision : object.status['configRevision'];
  return {
    observedGeneration: generation,
    ...(typeof revision === 'string' ? { configRevision: revision } : {}),
    configMapName: `fairlead-${object.metadata.name}`,
    servers: plan.servers.map(withoutUndefined),
    conditions,
  };
}

function withStrays(accepted: Verdict, { strays }: BindingPlan): Verdict {
  if (accepted.status !== 'True' || strays.length === 0) return accepted;
  const names = strays.slice(0, 10).map(({ alias, tool }) => `${alias}: ${tool}`);
  const more =
    strays.length > names.length ? ` and ${String(strays.length - names.length)} more` : '';
  return {
    ...accepted,
    message: `The spec is valid. Tools that the servers' own lists do not allow are never served: ${names.join(', ')}${more}.`,
  };
}

function withoutUndefined(server: PlannedServer): PlannedServer {
  const { message, ...rest } = server;
  return message === undefined ? rest : { ...rest, message: message.slice(0, 1024) };
}
