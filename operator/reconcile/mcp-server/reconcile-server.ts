// Reconciles one McpServer: nothing is applied for it, its status says what it is worth. Programmed
// means that every binding that names it and may use it can have it in its config.

import type { Clock } from '#core/clock.ts';
import {
  buildConditions,
  conditionTime,
  type Verdict,
  yes,
} from '#operator/reconcile/conditions.ts';
import type { CachedResource } from '#operator/reconcile/cached-objects.ts';
import { MCP_SERVERS } from '#operator/reconcile/resources.ts';
import { asServer, type World } from '#operator/reconcile/world.ts';
import { type StatusWriter, writeStatus } from '#operator/reconcile/write-status.ts';
import type { Reconcile } from '#operator/watch/controller-loop.ts';

import type { JudgedServer } from './judge-server.ts';

export interface ServerReconcilerOptions extends StatusWriter {
  readonly world: World;
  readonly clock: Clock;
}

export function createServerReconciler(options: ServerReconcilerOptions): Reconcile {
  const { world, clock } = options;
  return async (key, { signal }) => {
    const object = world.server(key);
    const judged = await world.judge(key, signal);
    if (object === undefined || judged === undefined) return undefined;
    const server = asServer(object);
    const bindingCount = server === undefined ? 0 : world.countBindings(key, server);
    const status = planServerStatus({
      object,
      judged,
      bindingCount,
      now: conditionTime(clock.nowMs()),
    });
    await writeStatus(options, { resource: MCP_SERVERS, object, status, signal });
    return undefined;
  };
}

export interface ServerStatusInput {
  readonly object: CachedResource;
  readonly judged: JudgedServer;
  readonly bindingCount: number;
  readonly now: string;
}

/** Pure. */
export function planServerStatus({
  object,
  judged,
  bindingCount,
  now,
}: ServerStatusInput): CachedResource['status'] & { readonly bindingCount: number } {
  const generation = object.metadata.generation ?? 0;
  const conditions = buildConditions(
    {
      accepted: judged.accepted,
      resolvedRefs: judged.resolvedRefs,
      programmed: judgeProgrammed(object, judged, bindingCount),
      isStalled: judged.accepted.status === 'False',
    },
    { previous: object.status.conditions, generation, now },
  );
  return { observedGeneration: generation, bindingCount, conditions };
}

function judgeProgrammed(
  object: CachedResource,
  judged: JudgedServer,
  bindingCount: number,
): Verdict {
  if (judged.usable === undefined)
    return {
      status: 'False',
      reason: 'Pending',
      message: 'No config has this server until the other conditions are True.',
    };
  if (asServer(object)?.spec.suspend === true)
    return yes('Suspended', 'The server is in no config while suspend is true.');
  return yes(
    'Programmed',
    bindingCount === 0
      ? 'No binding uses this server yet.'
      : `In the config of ${String(bindingCount)} ${bindingCount === 1 ? 'binding' : 'bindings'}.`,
  );
}
