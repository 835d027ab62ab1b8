// Where discovery asks, and where it does not ask any more. What it takes of documents, case by
// case, is in test/corpus/egress.json.

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { suite, test } from 'node:test';

import { discoverAuthorization } from '#sidecar/discovery/discover-authorization.ts';
import type { DiscoveryOutcome } from '#sidecar/discovery/discover-authorization.ts';
import { NAMED_POLICY, openNamedRemote } from '#test/support/named-remote.ts';

const MCP = 'https://mcp.example.com';
const AUTH = 'https://auth.example.com';
const RESOURCE = '/.well-known/oauth-protected-resource';
const SERVER = '/.well-known/oauth-authorization-server';

const serverMetadata = {
  issuer: AUTH,
  authorization_endpoint: `${AUTH}/authorize`,
  token_endpoint: `${AUTH}/token`,
  code_challenge_methods_supported: ['S256'],
};

type Documents = Readonly<Record<string, unknown>>;

interface Run {
  readonly outcome: DiscoveryOutcome;
  readonly seen: readonly string[];
}

/** A number is a status; what is not there is 404. */
async function discover(documents: Documents, endpoint = `${MCP}/api/mcp`): Promise<Run> {
  await using remote = await openNamedRemote((_request, response, url) =>
    answer(response, documents[url] ?? 404),
  );
  const outcome = await discoverAuthorization({
    client: remote.client,
    policy: NAMED_POLICY,
    endpoint: new URL(endpoint),
    resource: endpoint,
    issuers: [],
  });
  return { outcome, seen: remote.seen.map((line) => line.replace('GET ', '')) };
}

function answer(response: ServerResponse, document: unknown): void {
  if (typeof document === 'number') response.writeHead(document).end();
  else response.setHeader('content-type', 'application/json').end(JSON.stringify(document));
}

suite('discovery of the authorization server', () => {
  const resource = { resource: `${MCP}/api/mcp`, authorization_servers: [AUTH] };
  const places = [`${MCP}${RESOURCE}/api/mcp`, `${MCP}${RESOURCE}/api`, `${MCP}${RESOURCE}`];

  test('asks for the whole path, its parents and the root, until there is an answer (R16)', async () => {
    for (const [index, place] of places.entries()) {
      const { outcome, seen } = await discover({
        [place]: resource,
        [`${AUTH}${SERVER}`]: serverMetadata,
      });
      assert.equal(outcome.kind, 'plan');
      assert.equal(outcome.kind === 'plan' && outcome.plan.authorizationServer.issuer, AUTH);
      assert.deepEqual(seen, [...places.slice(0, index + 1), `${AUTH}${SERVER}`]);
    }
  });

  test('says that nothing is there when nothing is (R16)', async () => {
    const { outcome, seen } = await discover({});
    assert.deepEqual(outcome, { kind: 'absent', missing: 'resource' });
    assert.deepEqual(seen, places);
  });

  test('ends at a document that is refused, and asks nowhere else (R16)', async () => {
    const [first = ''] = places;
    const { outcome, seen } = await discover({
      [first]: { ...resource, resource: 'https://evil.org/' },
      [`${MCP}${RESOURCE}`]: resource,
    });
    assert.equal(outcome.kind, 'denied');
    assert.deepEqual(seen, [first]);
  });

  test('does not know after an answer that says nothing, and asks nowhere else (R16)', async () => {
    const [first = ''] = places;
    const { outcome, seen } = await discover({ [first]: 503, [`${MCP}${RESOURCE}`]: resource });
    assert.equal(outcome.kind, 'unknown');
    assert.deepEqual(seen, [first]);
  });

  test('looks for OpenID metadata where there is no other, in the specified order (R16)', async () => {
    const [first = ''] = places;
    const issuer = `${AUTH}/tenant`;
    const openid = `${AUTH}/tenant/.well-known/openid-configuration`;
    const { outcome, seen } = await discover({
      [first]: { ...resource, authorization_servers: [issuer] },
      [openid]: { ...serverMetadata, issuer },
    });
    assert.equal(outcome.kind, 'plan');
    assert.deepEqual(seen.slice(1), [
      `${AUTH}${SERVER}/tenant`,
      `${AUTH}/.well-known/openid-configuration/tenant`,
      openid,
    ]);
  });
});
