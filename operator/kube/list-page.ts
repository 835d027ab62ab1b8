// Pure: one page of a list answer.

import { KubeError, isRecord } from './kube-error.ts';
import type { KubeObject } from './kube-object.ts';
import { isKubeObject } from './watch-stream.ts';

export interface ListPage {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
  readonly token: string | undefined;
}

export function parseListPage(answer: unknown, request: string): ListPage {
  const metadata =
    isRecord(answer) && isRecord(answer['metadata']) ? answer['metadata'] : undefined;
  const items = isRecord(answer) ? (answer['items'] ?? []) : undefined;
  if (metadata === undefined || !Array.isArray(items) || !items.every(isKubeObject))
    throw notAnObject(request);
  const { resourceVersion, continue: token } = metadata;
  if (typeof resourceVersion !== 'string') throw notAnObject(request);
  return {
    items,
    resourceVersion,
    token: typeof token === 'string' && token !== '' ? token : undefined,
  };
}

export function notAnObject(request: string): KubeError {
  return new KubeError('server', {
    message: `${request}: the answer is not a Kubernetes object`,
    outcome: 'unknown',
  });
}
