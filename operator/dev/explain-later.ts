// What the guard judges only while it serves, in words: it cannot be told of a URL before. Pure.

import { DEFAULT_MAX_REDIRECTS } from '#core/egress/decide-redirect.ts';
import type { EgressPolicy } from '#core/egress/egress-policy.ts';

import type { ExplainStep } from './explain-egress.ts';

export function laterSteps(policy: EgressPolicy, url: URL): ExplainStep[] {
  const hops = String(policy.maxRedirects ?? DEFAULT_MAX_REDIRECTS);
  return [
    later('peer', 'address', 'the peer of the open socket is judged once more, before TLS'),
    later(
      'redirect',
      'calls',
      `307 and 308 within ${url.origin} are followed, ${hops} at most; all others are refused`,
    ),
    later(
      'redirect',
      'discovery',
      `${hops} at most are followed, each judged like this URL; from https to http none, and to another origin none with a token`,
    ),
    later('redirect', 'tokens', 'requests for tokens, registration and revocation follow none'),
  ];
}

function later(stage: 'peer' | 'redirect', step: string, note: string): ExplainStep {
  return { stage, step, verdict: 'not-asked', reason: null, detail: null, address: null, note };
}
