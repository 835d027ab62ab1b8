// How the operator logs an error. The logger keeps only the class of foreign errors, since their messages
// may hold anything; the words of the API server and of the lease hold names and reasons, and on-call
// needs them.

import { KubeError } from './kube-error.ts';
import { LeaseLostError } from './write-gate.ts';

export interface LoggedError {
  readonly err: unknown;
  readonly kind?: string;
  readonly status?: number;
  readonly detail?: string;
}

export function errorFields(error: unknown): LoggedError {
  if (error instanceof KubeError) {
    return { err: error, kind: error.kind, status: error.status, detail: error.message };
  }
  if (error instanceof LeaseLostError) return { err: error, detail: error.message };
  return { err: error };
}
