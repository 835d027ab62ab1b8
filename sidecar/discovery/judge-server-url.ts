// A URL that a server's document names: a candidate that must pass the guard's URL policy before it
// is kept, and that never leads from outside to this machine, not even in development. Pure.

import { bareHost, decideUrl, isLoopbackHost } from '#core/egress/decide-egress.ts';
import type { EgressPolicy } from '#core/egress/egress-policy.ts';

export interface UrlRules {
  readonly policy: EgressPolicy;
  /** The configured MCP endpoint. */
  readonly endpoint: URL;
}

export type ServerUrlVerdict =
  | { readonly kind: 'good'; readonly url: URL }
  | { readonly kind: 'refused'; readonly reason: string };

/** RFC 3986 characters only, and none that some readers take for another. */
const URI =
  /^https?:\/\/[!$%&'()*+,\-.0-9:;=@A-Z[\]_a-z~]+(?:[/?#][!#$%&'()*+,\-./0-9:;=?@A-Z[\]_a-z~]*)?$/i;

export function judgeServerUrl(value: unknown, { policy, endpoint }: UrlRules): ServerUrlVerdict {
  if (typeof value !== 'string') return refused('not-a-string');
  const url = URI.test(value) ? URL.parse(value) : null;
  if (url === null) return refused('not-a-url');
  if (isLoopbackHost(bareHost(url)) && !isLoopbackHost(bareHost(endpoint)))
    return refused('not-loopback');
  const verdict = decideUrl(policy, url);
  return verdict.kind === 'deny' ? refused(verdict.reason) : { kind: 'good', url };
}

function refused(reason: string): ServerUrlVerdict {
  return { kind: 'refused', reason };
}
