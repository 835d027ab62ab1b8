// From a server that wants a token to a validated plan of where one is had: the protected resource's
// metadata, one authorization server of it, that server's metadata. Each URL on the way is a
// server's word and goes through the guard; each document is compared with the configuration. A
// refusal ends the discovery: it is never a reason to try somewhere else. Makes no token request.
// MCP 2026-07-28 "Authorization", RFC 9728, RFC 8414, RFC 8707.

import type { GuardedClient } from '#core/egress/guarded-client.ts';
import type { EgressPolicy } from '#core/egress/egress-policy.ts';
import type { JsonObject } from '#core/egress/read-document.ts';
import { bareHost, decideUrl, isLoopbackHost } from '#core/egress/decide-egress.ts';

import { judgeAuthorizationServer } from './authorization-server-metadata.ts';
import type { AuthorizationServer } from './authorization-server-metadata.ts';
import { fetchMetadata } from './fetch-metadata.ts';
import type { FetchLimits, MetadataDenial, MetadataUnknown } from './fetch-metadata.ts';
import type { BearerChallenge } from './parse-challenge.ts';
import { judgeProtectedResource } from './protected-resource-metadata.ts';
import type { ProtectedResource, RefusedIssuer } from './protected-resource-metadata.ts';
import {
  authorizationServerMetadataUrls,
  protectedResourceMetadataUrls,
} from './well-known-urls.ts';

export interface DiscoveryQuestion {
  readonly client: GuardedClient;
  readonly policy: EgressPolicy;
  readonly endpoint: URL;
  /** RFC 8707 resource as configured, byte for byte. */
  readonly resource: string;
  /** Issuers as configured; empty: any that the policy allows. */
  readonly issuers: readonly string[];
  /** Of the 401, if there was one. */
  readonly challenge?: BearerChallenge | undefined;
  readonly limits?: FetchLimits;
}

export interface AuthorizationPlan {
  /** As configured: what tokens are asked for. */
  readonly resource: string;
  /** What the metadata calls the resource: the same, or what it lies under. */
  readonly namedResource: string;
  readonly resourceMetadataUrl: string;
  readonly authorizationServer: AuthorizationServer;
  /** Of the challenge, else of the resource's metadata. */
  readonly scopes: readonly string[];
  readonly refusedIssuers: readonly RefusedIssuer[];
}

export type DiscoveryOutcome =
  | { readonly kind: 'plan'; readonly plan: AuthorizationPlan }
  /** No metadata anywhere: the server wants no token, or does not say whose. */
  | { readonly kind: 'absent'; readonly missing: 'resource' | 'authorization-server' }
  | DiscoveryDenial
  | MetadataUnknown;

export interface DiscoveryDenial extends MetadataDenial {
  /** Of the URL that was refused or whose document was. */
  readonly host: string;
  readonly refusedIssuers: readonly RefusedIssuer[];
}

interface Found {
  readonly kind: 'document';
  readonly url: URL;
  readonly value: JsonObject;
}

export async function discoverAuthorization(
  question: DiscoveryQuestion,
): Promise<DiscoveryOutcome> {
  const places = resourcePlaces(question);
  if ('kind' in places) return places;
  const found = await firstDocument(question, places);
  if (found === undefined) return { kind: 'absent', missing: 'resource' };
  if (found.kind !== 'document') return found;
  const verdict = judgeProtectedResource(found.value, question);
  if (verdict.kind === 'refused') return denied(found.url, verdict.reason, verdict.refusedIssuers);
  const { resource } = verdict;
  const metadata = await firstDocument(
    question,
    authorizationServerMetadataUrls(new URL(resource.issuer)),
  );
  if (metadata === undefined) return { kind: 'absent', missing: 'authorization-server' };
  if (metadata.kind !== 'document') return metadata;
  const server = judgeAuthorizationServer(metadata.value, resource.issuer, question);
  if (server.kind === 'refused')
    return denied(metadata.url, `${server.member}: ${server.reason}`, resource.refusedIssuers);
  return { kind: 'plan', plan: planOf(question, { found, resource, server: server.server }) };
}

/** What the challenge names is asked alone: it is the server's answer to where its metadata is. */
function resourcePlaces(question: DiscoveryQuestion): readonly URL[] | DiscoveryDenial {
  const { endpoint, challenge, policy } = question;
  const named = challenge?.resourceMetadata;
  if (named === undefined) return protectedResourceMetadataUrls(endpoint);
  const url = URL.parse(named, endpoint.href);
  if (url === null) return { ...denied(endpoint, 'not-a-url'), stage: 'url-policy' };
  if (isLoopbackHost(bareHost(url)) && !isLoopbackHost(bareHost(endpoint)))
    return { ...denied(url, 'not-loopback'), stage: 'url-policy' };
  const verdict = decideUrl(policy, url);
  return verdict.kind === 'deny' ? { ...denied(url, verdict.reason), stage: verdict.stage } : [url];
}

/** In order; only a place that has nothing lets the next one be asked. */
async function firstDocument(
  { client, limits = {} }: DiscoveryQuestion,
  places: readonly URL[],
): Promise<Found | DiscoveryDenial | MetadataUnknown | undefined> {
  for (const url of places) {
    const answer = await fetchMetadata(client, url, limits);
    if (answer.kind === 'document') return { kind: 'document', url, value: answer.value };
    if (answer.kind === 'denied') return { ...answer, host: bareHost(url), refusedIssuers: [] };
    if (answer.kind === 'unknown') return answer;
  }
  return undefined;
}

interface Findings {
  readonly found: Found;
  readonly resource: ProtectedResource;
  readonly server: AuthorizationServer;
}

function planOf(
  { resource: configured, challenge }: DiscoveryQuestion,
  { found, resource, server }: Findings,
): AuthorizationPlan {
  return {
    resource: configured,
    namedResource: resource.resource,
    resourceMetadataUrl: found.url.href,
    authorizationServer: server,
    scopes: challenge?.scope?.split(' ') ?? resource.scopes,
    refusedIssuers: resource.refusedIssuers,
  };
}

function denied(
  url: URL,
  reason: string,
  refusedIssuers: readonly RefusedIssuer[] = [],
): DiscoveryDenial {
  return { kind: 'denied', stage: 'document', reason, hop: 0, host: bareHost(url), refusedIssuers };
}
