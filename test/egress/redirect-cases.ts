// Cases about redirects: the product's own exchange starts where the case says, and the listeners
// answer with the hops of the case.

import { z } from 'zod';

import type { ExchangeRequest } from '#core/egress/guarded-client.ts';

import { resolverOf } from './case-resolver.ts';
import type { CaseWorld } from './case-world.ts';
import type { CaseGiven } from './corpus-file.ts';
import { openClient, verdictOf } from './guarded-exchange.ts';
import { jsonAnswer } from './loopback-world.ts';
import type { AnswerRequest } from './loopback-world.ts';
import type { Verdict } from './observation.ts';

const hopSchema = z.object({
  at: z.string(),
  status: z.number(),
  location: z.union([z.string(), z.array(z.string())]).optional(),
  headers: z.record(z.string(), z.string()).optional(),
});

type Hop = z.infer<typeof hopSchema>;

const redirectInput = z.object({
  start: z.object({
    url: z.string(),
    method: z.enum(['GET', 'POST', 'DELETE']),
    headers: z.record(z.string(), z.string()),
    body: z.string().optional(),
  }),
  kindOfRequest: z.enum(['discovery', 'mcp', 'token', 'registration', 'revocation', 'jwks']),
  hops: z.array(hopSchema),
});

export async function runRedirectCase(world: CaseWorld, given: CaseGiven): Promise<Verdict> {
  const { start, kindOfRequest, hops } = redirectInput.parse(given.input);
  world.serve(answerHops(hops));
  const url = URL.parse(start.url);
  if (url === null) return { expect: 'deny', stage: 'parse', deniedAtHop: 0 };
  const { method, headers, body } = start;
  const request: ExchangeRequest = {
    kind: kindOfRequest,
    url,
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  };
  await using opened = openClient(world, { resolve: resolverOf(given.resolve) });
  const outcome = await opened.client.exchange(request);
  return verdictOf(outcome, opened);
}

/** A place that answers twice answers in turn. */
function answerHops(hops: readonly Hop[]): AnswerRequest {
  const left = [...hops];
  return ({ url }) => {
    const index = left.findIndex(({ at }) => at === url);
    const hop = left[index];
    if (hop === undefined) return jsonAnswer({});
    if (left.filter(({ at }) => at === url).length > 1) left.splice(index, 1);
    const locations = [hop.location ?? []].flat();
    return {
      status: hop.status,
      headers: [
        ...locations.map((location) => ['location', location] as const),
        ...Object.entries(hop.headers ?? {}),
      ],
      body: '',
    };
  };
}
