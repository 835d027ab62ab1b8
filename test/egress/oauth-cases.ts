// Cases about discovery: the product's own discovery starts from the endpoint and the challenge of
// the case; the listeners serve the documents that it gives, wherever metadata is asked for.

import { z } from 'zod';

import { discoverAuthorization } from '#sidecar/discovery/discover-authorization.ts';
import type { DiscoveryOutcome } from '#sidecar/discovery/discover-authorization.ts';
import { parseBearerChallenge } from '#sidecar/discovery/parse-challenge.ts';

import { resolverOf } from './case-resolver.ts';
import type { CaseWorld } from './case-world.ts';
import type { CaseGiven } from './corpus-file.ts';
import { openClient } from './guarded-exchange.ts';
import type { OpenedClient } from './guarded-exchange.ts';
import { jsonAnswer } from './loopback-world.ts';
import type { AnswerRequest, CannedAnswer } from './loopback-world.ts';
import type { Verdict } from './observation.ts';

const oauthInput = z.strictObject({
  mcp: z.string(),
  resourceMetadataUrl: z.string().optional(),
  /** Any JSON value; absent when there is no such document. */
  protectedResourceMetadata: z.json().optional(),
  authorizationServerMetadata: z.json().optional(),
  binding: z.strictObject({ issuers: z.array(z.string()).optional() }),
});

type OauthInput = z.infer<typeof oauthInput>;

const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';
const SERVER_METADATA = '/.well-known/oauth-authorization-server';
const NOT_FOUND: CannedAnswer = { status: 404, headers: [], body: '' };

export async function runOauthCase(world: CaseWorld, given: CaseGiven): Promise<Verdict> {
  const input = oauthInput.parse(given.input);
  const endpoint = URL.parse(input.mcp);
  if (endpoint === null) return { expect: 'deny', stage: 'parse' };
  world.serve(documentsOf(input, endpoint));
  await using opened = openClient(world, { resolve: resolverOf(given.resolve) });
  const outcome = await discoverAuthorization({
    client: opened.client,
    policy: world.policy,
    endpoint,
    resource: input.mcp,
    issuers: input.binding.issuers ?? [],
    challenge: parseBearerChallenge(challengeOf(input)),
  });
  return verdictOf(outcome, opened);
}

/** As a server sends it with a 401 (RFC 9728 section 5.1). */
function challengeOf({ resourceMetadataUrl }: OauthInput): string {
  if (resourceMetadataUrl === undefined) return 'Bearer';
  const quoted = resourceMetadataUrl.replaceAll(/["\\]/g, (character) => `\\${character}`);
  return `Bearer resource_metadata="${quoted}"`;
}

function documentsOf(input: OauthInput, endpoint: URL): AnswerRequest {
  const named = URL.parse(input.resourceMetadataUrl ?? '', endpoint.href)?.href;
  return ({ url }) => {
    const { pathname } = new URL(url);
    if (url === named || pathname.startsWith(RESOURCE_METADATA))
      return documentAnswer(input.protectedResourceMetadata);
    if (pathname.startsWith(SERVER_METADATA))
      return documentAnswer(input.authorizationServerMetadata);
    return NOT_FOUND;
  };
}

function documentAnswer(value: unknown): CannedAnswer {
  return value === undefined ? NOT_FOUND : jsonAnswer(value);
}

function verdictOf(outcome: DiscoveryOutcome, { decisions }: OpenedClient): Verdict {
  switch (outcome.kind) {
    case 'plan':
      return { expect: 'allow', selectedIssuer: outcome.plan.authorizationServer.issuer };
    case 'denied':
      return { expect: 'deny', stage: outcome.stage, reason: outcome.reason };
    case 'absent':
      return { expect: 'deny', stage: 'document', reason: `no metadata of the ${outcome.missing}` };
    case 'unknown':
      return {
        expect: 'deny',
        stage: decisions.findLast(({ verdict }) => verdict !== 'allow')?.stage,
        reason: `${outcome.code}: ${outcome.reason}`,
      };
    default:
      return outcome satisfies never;
  }
}
