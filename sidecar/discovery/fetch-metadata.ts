// Asks one place for one metadata document, through the guard. Four ends: the document, nothing
// there, refused for good, or not known; only "nothing there" lets the next place be asked.

import type { GuardedClient } from '#core/egress/guarded-client.ts';
import { readJsonDocument } from '#core/egress/read-document.ts';
import type { JsonObject } from '#core/egress/read-document.ts';
import type { ErrorCode } from '#core/errors.ts';

export type MetadataAnswer =
  | { readonly kind: 'document'; readonly value: JsonObject }
  | { readonly kind: 'absent'; readonly status: number }
  | MetadataDenial
  | MetadataUnknown;

export interface MetadataDenial {
  readonly kind: 'denied';
  /** Of the guard, or `document` for what the answer itself is. */
  readonly stage: string;
  readonly reason: string;
  /** 0: the URL that was asked; 1: its first redirect, and so on. */
  readonly hop: number;
}

export interface MetadataUnknown {
  readonly kind: 'unknown';
  readonly code: ErrorCode;
  readonly reason: string;
}

export interface FetchLimits {
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/** Come back later: says nothing about what is there. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 421, 425, 429]);
/** An answer of this kind is one; that it is unusable will not change by asking again. */
const BAD_ANSWERS: ReadonlySet<string> = new Set(['too-large', 'content-coding']);

export async function fetchMetadata(
  client: GuardedClient,
  url: URL,
  limits: FetchLimits,
): Promise<MetadataAnswer> {
  const headers = { accept: 'application/json' };
  const outcome = await client.exchange({ kind: 'discovery', url, method: 'GET', headers }, limits);
  switch (outcome.kind) {
    case 'denied':
      return outcome;
    case 'failed':
      return BAD_ANSWERS.has(outcome.reason)
        ? { kind: 'denied', stage: 'document', reason: outcome.reason, hop: outcome.hop }
        : { kind: 'unknown', code: outcome.code, reason: outcome.reason };
    case 'response': {
      const { status, hops } = outcome;
      if (status >= 500 || TRANSIENT.has(status))
        return { kind: 'unknown', code: 'SERVER_UNAVAILABLE', reason: `status-${status}` };
      if (status !== 200) return { kind: 'absent', status };
      const reading = readJsonDocument(outcome);
      return reading.kind === 'document'
        ? { kind: 'document', value: reading.value }
        : { kind: 'denied', stage: 'document', reason: reading.reason, hop: hops };
    }
    default:
      return outcome satisfies never;
  }
}
