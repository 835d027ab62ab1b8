// What a case expects against what was seen, pure: one sentence for each difference. An allowed
// case counts only when something really arrived, and a denied one only when nothing did that the
// case does not list.

import { plainAddress } from '#core/egress/classify-address.ts';

import type { CaseExpected, CaseGiven, LastRequest } from './corpus-file.ts';
import type { Observation, SeenRequest } from './observation.ts';

/** Kinds of which a request is the proof that the answer was "allow". */
const PROVEN_BY_REQUEST = new Set(['url', 'ip', 'metadata', 'dns', 'redirect', 'oauth']);
/** What the HTTP client itself puts on every request. */
const TRANSPORT_HEADERS = new Set(['host', 'connection', 'user-agent', 'content-length']);

export function compareCase(
  { kind, input }: CaseGiven,
  expected: CaseExpected,
  seen: Observation,
): readonly string[] {
  return [
    ...seen.faults,
    ...compareVerdict(expected, seen),
    ...compareRequests(kind, expected, seen),
    ...compareOwnRequest(kind, input, seen),
    ...compareConnections(expected, seen),
    ...compareLastRequest(expected.lastRequest, seen.requests.at(-1)),
  ];
}

function compareVerdict(expected: CaseExpected, { verdict }: Observation): string[] {
  const found: string[] = [];
  const note = (name: string, want: unknown, got: unknown): void => {
    if (want !== got) found.push(`${name}: ${show(want)} expected, got ${show(got)}`);
  };
  note('verdict', expected.expect, verdict.expect);
  if (expected.stage !== undefined) note('stage', expected.stage, verdict.stage);
  if (expected.deniedAtHop !== undefined)
    note('denied at hop', expected.deniedAtHop, verdict.deniedAtHop);
  if (expected.selectedIssuer !== undefined)
    note('issuer', expected.selectedIssuer, verdict.selectedIssuer);
  return found;
}

function compareRequests(
  kind: string,
  { expect, mustSend, mustNotSend = [] }: CaseExpected,
  { requests, dialled }: Observation,
): string[] {
  const found: string[] = [];
  if (mustSend !== undefined) {
    // With a method where the case names one.
    const sent = requests.map((request, index) =>
      /^[A-Z]+ /.test(mustSend[index] ?? mustSend[0] ?? '')
        ? `${request.method} ${request.url}`
        : request.url,
    );
    if (show(sent) !== show(mustSend))
      found.push(`requests: ${show(mustSend)} expected, got ${show(sent)}`);
  } else if (PROVEN_BY_REQUEST.has(kind)) {
    if (expect === 'allow' && requests.length === 0) found.push('no request arrived');
    if (expect === 'deny') found.push(...compareSilence(kind, requests, dialled));
  }
  const urls = new Set(requests.map(({ url }) => url));
  const listed = new Set(mustSend?.map(withoutMethod));
  for (const text of mustNotSend) {
    const url = plainUrl(text);
    if (urls.has(url) && !listed.has(url)) found.push(`requested against the case: ${url}`);
  }
  return found;
}

/** What was asked for is what arrived, once. */
function compareOwnRequest(
  kind: string,
  input: unknown,
  { verdict, requests }: Observation,
): string[] {
  const isUrl = (kind === 'url' || kind === 'metadata') && typeof input === 'string';
  if (!isUrl || verdict.expect === 'deny' || !URL.canParse(input)) return [];
  const [want, got] = [show([plainUrl(input)]), show(requests.map(({ url }) => url))];
  return want === got ? [] : [`requests: ${want} expected, got ${got}`];
}

/** Earlier connections of a row may have been allowed. */
function compareSilence(
  kind: string,
  requests: readonly SeenRequest[],
  dialled: readonly string[],
): string[] {
  if (kind === 'dns') return [];
  return [
    ...requests.map(({ method, url }) => `requested although denied: ${method} ${url}`),
    ...dialled.map((address) => `dialled although denied: ${address}`),
  ];
}

function compareConnections(
  { expect, connectTo, mustNotConnect = [], maxLookups }: CaseExpected,
  { verdict, dialled }: Observation,
): string[] {
  const found: string[] = [];
  const { connectedTo = [], lookups = 0 } = verdict;
  if (expect === 'deny' && connectedTo.length > 0)
    found.push(`dialled although denied: ${connectedTo.join(', ')}`);
  if (connectTo !== undefined && !isWithin(connectedTo, connectTo))
    found.push(`dialled: ${show(connectTo)} expected, got ${show(connectedTo)}`);
  const refused = new Set(mustNotConnect.map(plainAddress));
  const reached = dialled.filter((address) => refused.has(plainAddress(address)));
  if (reached.length > 0) found.push(`dialled against the case: ${reached.join(', ')}`);
  if (maxLookups !== undefined && lookups > maxLookups)
    found.push(`lookups: at most ${maxLookups} expected, got ${lookups}`);
  return found;
}

function isWithin(dialled: readonly string[], listed: readonly string[]): boolean {
  const addresses = new Set(listed.map(plainAddress));
  return dialled.length > 0 && dialled.every((address) => addresses.has(plainAddress(address)));
}

function compareLastRequest(
  expected: LastRequest | undefined,
  seen: SeenRequest | undefined,
): string[] {
  if (expected === undefined) return [];
  const got = seen === undefined ? undefined : { ...seen, headers: ownHeaders(seen) };
  const want = { ...expected, headers: expected.headers.toSorted() };
  const found: string[] = [];
  for (const name of ['method', 'url', 'headers', 'hasBody'] as const) {
    if (show(want[name]) !== show(got?.[name]))
      found.push(`last request's ${name}: ${show(want[name])} expected, got ${show(got?.[name])}`);
  }
  return found;
}

function ownHeaders({ headers }: SeenRequest): string[] {
  return headers.filter((name) => !TRANSPORT_HEADERS.has(name)).toSorted();
}

function withoutMethod(text: string): string {
  return text.replace(/^[A-Z]+ /, '');
}

/** As a server would see it: no fragment and no user information. */
function plainUrl(text: string): string {
  const url = URL.parse(withoutMethod(text));
  if (url === null) return text;
  [url.hash, url.username, url.password] = ['', '', ''];
  return url.href;
}

function show(value: unknown): string {
  return JSON.stringify(value) ?? 'nothing';
}
