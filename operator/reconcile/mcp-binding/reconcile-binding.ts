// Reconciles one McpBinding: gather, plan, apply the ConfigMap when it differs, write the status
// when it differs. What can't be known ends the run and is tried again; it never takes anything
// away. A second run in an unchanged world writes nothing.

import type { Clock } from '#core/clock.ts';
import type { McpBinding } from '#crds/validate-object.ts';
import type { KubeClient } from '#operator/kube/kube-client.ts';
import { isKubeError } from '#operator/kube/kube-error.ts';
import type { KubeError } from '#operator/kube/kube-error.ts';
import { namespacedKey } from '#operator/kube/kube-object.ts';
import type { CachedResource } from '#operator/reconcile/cached-objects.ts';
import {
  buildConditions,
  conditionTime,
  no,
  type Verdict,
} from '#operator/reconcile/conditions.ts';
import { judgeSpec, type JudgedServer } from '#operator/reconcile/mcp-server/judge-server.ts';
import { MCP_BINDINGS } from '#operator/reconcile/resources.ts';
import { asBinding, serversOf, type World } from '#operator/reconcile/world.ts';
import { type StatusWriter, writeStatus } from '#operator/reconcile/write-status.ts';
import type { Reconcile, ReconcileContext } from '#operator/watch/controller-loop.ts';

import { applyConfigMap, CONFIG_MAP_PREFIX, type ConfigMapRun } from './apply-config-map.ts';
import { type BindingPlan, planBinding, type PlannedServer } from './plan-binding.ts';

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
    if (world.isNamespaceTerminating(object.metadata.namespace ?? '')) return undefined;
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
  const { programmed, error } = await tryApply(options, { object, plan, signal });
  const status = planBindingStatus({
    object,
    plan,
    programmed,
    retrying: error === undefined ? undefined : programmed.message,
    now: conditionTime(options.clock.nowMs()),
  });
  await writeStatus(options, { resource: MCP_BINDINGS, object, status, signal });
  if (error !== undefined) throw error;
}

interface Applied {
  readonly programmed: Verdict;
  /** Why it is tried again although there is something to say. */
  readonly error?: KubeError;
}

/** What the API server refuses shows in the status while it is tried again; what is unknown does not. */
async function tryApply(options: BindingReconcilerOptions, run: ConfigMapRun): Promise<Applied> {
  try {
    return { programmed: await applyConfigMap(options, run) };
  } catch (error) {
    if (!isKubeError(error, 'forbidden', 'invalid')) throw error;
    const name = `${CONFIG_MAP_PREFIX}${run.object.metadata.name}`;
    const message = `The API server refuses ConfigMap ${name}; the operator's log has its answer. A config that was written before stays in use.`;
    return { programmed: no('ApplyFailed', message), error };
  }
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

export interface BindingStatusInput {
  readonly object: CachedResource;
  readonly plan: BindingPlan;
  readonly programmed: Verdict;
  /** What is being tried again. */
  readonly retrying: string | undefined;
  readonly now: string;
}

/** Pure. */
export function planBindingStatus({
  object,
  plan,
  programmed,
  retrying,
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
      ...(retrying === undefined ? {} : { retrying }),
    },
    { previous: object.status.conditions, generation, now },
  );
  // What the ConfigMap has: the new one only once it is written.
  const revision =
    plan.config.kind === 'ok' && programmed.status === 'True'
      ? plan.config.revision
      : object.status['configRevision'];
  return {
    observedGeneration: generation,
    ...(typeof revision === 'string' ? { configRevision: revision } : {}),
    configMapName: `${CONFIG_MAP_PREFIX}${object.metadata.name}`,
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
