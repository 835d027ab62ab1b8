// Writes a status by server-side apply, only when it differs from what the API server has: a status
// written on each pass would be its own next event. Says in an Event what has changed.

import { canonicalJson } from '#core/config/sidecar-config.ts';
import type { Condition } from '#crds/status-schema.ts';
import type { EventRecorder } from '#operator/kube/events.ts';
import type { KubeClient } from '#operator/kube/kube-client.ts';
import type { ApiResource } from '#operator/kube/kube-object.ts';

import type { CachedResource } from './cached-objects.ts';
import { isOwnCondition } from './conditions.ts';
import type { OwnWrites } from './own-writes.ts';

export interface StatusWrite {
  readonly resource: ApiResource;
  readonly object: CachedResource;
  /** The whole status; members that are absent are removed. */
  readonly status: {
    readonly observedGeneration: number;
    readonly conditions: readonly Condition[];
    readonly [field: string]: unknown;
  };
  readonly signal: AbortSignal;
}

export interface StatusWriter {
  readonly client: Pick<KubeClient, 'applyStatus'>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly ownWrites: OwnWrites;
}

/** True when something was written. */
export async function writeStatus(
  { client, events, ownWrites }: StatusWriter,
  write: StatusWrite,
): Promise<boolean> {
  const { resource, object, status, signal } = write;
  if (comparable(status) === comparable(object.status)) return false;
  const { name, namespace, uid } = object.metadata;
  // The uid makes the API server refuse when the object was deleted and made anew meanwhile.
  const metadata = {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
  };
  const written = await client.applyStatus(
    resource,
    { apiVersion: object.apiVersion, kind: object.kind, metadata, status },
    { signal },
  );
  ownWrites.noteStatus(written, status);
  announce(events, object, status.conditions);
  return true;
}

/** Ours alone, in one order: conditions of others, and the order of map lists, are not ours to mind. */
function comparable({ conditions, servers, ...rest }: StatusWrite['status']): string {
  return canonicalJson({
    ...rest,
    conditions: conditions.filter(isOwnCondition).map(canonicalJson).toSorted(),
    ...(Array.isArray(servers) ? { servers: servers.map(canonicalJson).toSorted() } : {}),
  });
}

function announce(
  events: StatusWriter['events'],
  object: CachedResource,
  conditions: readonly Condition[],
): void {
  const ready = conditions.find(({ type }) => type === 'Ready');
  const before = object.status.conditions.find(({ type }) => type === 'Ready');
  if (ready === undefined || (before?.status === ready.status && before.reason === ready.reason))
    return;
  // That a new object is in order from the start is no news.
  if (before === undefined && ready.status === 'True') return;
  events.record({
    regarding: object,
    type: ready.status === 'True' ? 'Normal' : 'Warning',
    reason: ready.reason,
    action: 'Reconcile',
    note: ready.message,
  });
}
