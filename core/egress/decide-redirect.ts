// Whether an answer is a redirect that is followed, and where to. Pure. What a server names in a
// Location is a candidate and no more: it passes the same URL policy as a configured URL, and what
// the first request was for decides how far it may lead. RFC 9110 section 15.4, RFC 9728, RFC 8414.

import { bareHost, decideUrl, isLoopbackHost, portOf } from './decide-egress.ts';
import type { DenyReason, EgressPolicy } from './egress-policy.ts';

/** What a request is for; the OAuth endpoints carry secrets in their bodies. */
export type RequestKind = 'discovery' | 'jwks' | 'mcp' | 'token' | 'registration' | 'revocation';

/** 300, 304 and 305 name other things than the place of the answer. */
const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const KEEPS_METHOD: ReadonlySet<number> = new Set([307, 308]);
export const DEFAULT_MAX_REDIRECTS = 3;
/** RFC 3986 characters, percent-encoding included; `\` is an authority to some readers. */
const URI_REFERENCE = /^[!#$%&'()*+,\-./0-9:;=?@A-Z[\]_a-z~]+$/;
const MAX_LOCATION_LENGTH = 4_096;

export interface RedirectQuestion {
  readonly policy: EgressPolicy;
  readonly kind: RequestKind;
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** The request carries a token, a session or a body. */
  readonly isPersonal: boolean;
  /** Of the request that was answered. */
  readonly url: URL;
  readonly status: number;
  /** One per Location header. */
  readonly locations: readonly string[];
  /** All URLs asked so far in this exchange, this one included. */
  readonly visited: readonly URL[];
}

export type RedirectVerdict =
  | { readonly kind: 'final' }
  | { readonly kind: 'follow'; readonly url: URL; readonly isSameOrigin: boolean }
  | {
      readonly kind: 'deny';
      readonly reason: DenyReason;
      readonly host: string;
      readonly port: number;
    };

interface Candidate {
  readonly question: RedirectQuestion;
  readonly target: URL;
  readonly isSameOrigin: boolean;
}

interface RedirectStep {
  readonly name: string;
  readonly fault: (candidate: Candidate) => DenyReason | undefined;
}

/** In the order in which they are asked; the first fault is the verdict. */
const STEPS: readonly RedirectStep[] = [
  // A later hop without TLS would let anybody on the way name the next one.
  {
    name: 'downgrade',
    fault: ({ question, target }) =>
      question.url.protocol === 'https:' && target.protocol === 'http:'
        ? 'redirect-downgrade'
        : undefined,
  },
  // The token and the session are the origin's; another origin gets neither, nor the body.
  {
    name: 'origin',
    fault: ({ question, isSameOrigin }) =>
      (question.kind === 'mcp' || question.isPersonal) && !isSameOrigin
        ? 'redirect-other-origin'
        : undefined,
  },
  // Two servers that point at each other would keep us busy for ever.
  {
    name: 'loop',
    fault: ({ question, target }) =>
      question.visited.some((url) => withoutFragment(url) === withoutFragment(target))
        ? 'redirect-loop'
        : undefined,
  },
  {
    name: 'limit',
    fault: ({ question }) =>
      question.visited.length > (question.policy.maxRedirects ?? DEFAULT_MAX_REDIRECTS)
        ? 'redirect-limit'
        : undefined,
  },
  // In development loopback is open to those who are there already, and to nobody from outside.
  {
    name: 'loopback',
    fault: ({ question, target }) =>
      isLoopbackHost(bareHost(target)) && !question.visited.every(isLoopback)
        ? 'not-loopback'
        : undefined,
  },
  {
    name: 'url-policy',
    fault: ({ question, target }) => {
      const verdict = decideUrl(question.policy, target);
      return verdict.kind === 'deny' ? verdict.reason : undefined;
    },
  },
];

export function decideRedirect(question: RedirectQuestion): RedirectVerdict {
  const { kind, method, status, locations, url } = question;
  const [location] = locations;
  if (!REDIRECT_STATUSES.has(status) || location === undefined) return { kind: 'final' };
  const deny = (reason: DenyReason, at = url): RedirectVerdict => ({
    kind: 'deny',
    reason,
    host: bareHost(at),
    port: portOf(at),
  });
  // The body holds a secret that is for this endpoint only, also on its own origin.
  if (kind === 'token' || kind === 'registration' || kind === 'revocation')
    return deny('redirect-not-followed');
  // Anything but 307 and 308 may turn a POST into a GET: another request than the one that was made.
  if (method !== 'GET' && !KEEPS_METHOD.has(status)) return deny('redirect-method');
  // Two readers would take two different ones.
  if (locations.length > 1) return deny('redirect-location');
  const target = parseLocation(location, url);
  if (target === undefined) return deny('redirect-location');
  const isSameOrigin = target.origin === url.origin;
  for (const { fault } of STEPS) {
    const reason = fault({ question, target, isSameOrigin });
    if (reason !== undefined) return deny(reason, target);
  }
  return { kind: 'follow', url: target, isSameOrigin };
}

/** One per line of the message, whatever Node's types say of repeated headers. */
export function headerValues(header: string | readonly string[] | undefined): readonly string[] {
  if (header === undefined) return [];
  return typeof header === 'string' ? [header] : header;
}

/** Only what every reader reads alike: no blanks, controls, backslashes or characters beyond ASCII. */
function parseLocation(location: string, base: URL): URL | undefined {
  if (location.length > MAX_LOCATION_LENGTH || !URI_REFERENCE.test(location)) return undefined;
  // A scheme without an authority (`https:/x`, `https:x`) is relative to some and absolute to others,
  // and what follows three slashes is a path to some and a host to others.
  if (/^(https?:(?!\/\/[^/])|\/\/\/)/i.test(location)) return undefined;
  const target = URL.parse(location, base.href);
  if (target?.protocol !== 'https:' && target?.protocol !== 'http:') return undefined;
  return target;
}

function withoutFragment(url: URL): string {
  return url.href.slice(0, url.href.length - url.hash.length);
}

function isLoopback(url: URL): boolean {
  return isLoopbackHost(bareHost(url));
}
