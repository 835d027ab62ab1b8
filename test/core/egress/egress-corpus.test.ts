import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { suite, test } from 'node:test';

import { z } from 'zod';

import { systemClock } from '#core/clock.ts';
import { bareHost, decideAddress, decideUrl, portOf } from '#core/egress/decide-egress.ts';
import type { EgressPolicy } from '#core/egress/egress-policy.ts';
import { createPinnedLookup } from '#core/egress/pinned-lookup.ts';
import type { ResolveHost } from '#core/egress/pinned-lookup.ts';
import { readEgressCorpus } from '#test/support/egress-corpus.ts';
import type { CorpusCase } from '#test/support/egress-corpus.ts';

// The whole decision of a first connection: parse, URL policy, literal, resolution. What an
// allowed case would dial is the list that the pinned lookup hands to the socket layer.

interface Outcome {
  readonly expect: 'allow' | 'deny';
  readonly stage?: string;
  readonly addresses?: readonly string[];
}

const corpus = readEgressCorpus();
const PUBLIC = '93.184.215.14';

async function judge(policy: EgressPolicy, text: string, resolve: ResolveHost): Promise<Outcome> {
  const url = URL.parse(text);
  if (url === null) return { expect: 'deny', stage: 'parse' };
  const verdict = decideUrl(policy, url);
  if (verdict.kind === 'deny') return { expect: 'deny', stage: verdict.stage };
  if (isIP(bareHost(url)) !== 0) return { expect: 'allow', addresses: [bareHost(url)] };
  return lookUp(policy, url, resolve);
}

function lookUp(policy: EgressPolicy, url: URL, resolve: ResolveHost): Promise<Outcome> {
  const lookup = createPinnedLookup({
    policy,
    port: portOf(url),
    timeoutMs: 20,
    clock: systemClock,
    onDecision: () => {},
    resolve,
  });
  return new Promise((settle) => {
    lookup(bareHost(url), (outcome) => {
      if (outcome.kind === 'refused') settle({ expect: 'deny', stage: outcome.error.stage });
      else settle({ expect: 'allow', addresses: outcome.addresses });
    });
  });
}

function answering(addresses: readonly string[]): ResolveHost {
  return (_host, _options, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: isIP(address) })),
    );
}

function defaultResolver(corpusCase: CorpusCase): ResolveHost {
  return (host, options, callback) => {
    const name = host.replace(/\.$/, '');
    const listed = corpusCase.resolve?.[name] ?? corpusCase.resolve?.[host];
    const fallback = /(^|\.)localhost$/.test(name) ? '127.0.0.1' : PUBLIC;
    answering(listed ?? [fallback])(host, options, callback);
  };
}

function checkOutcome(outcome: Outcome, corpusCase: CorpusCase): void {
  assert.equal(outcome.expect, corpusCase.expect);
  if (corpusCase.stage !== undefined) assert.equal(outcome.stage, corpusCase.stage);
}

function titleOf({ id, expect, reason }: CorpusCase): string {
  return `${id} must ${expect}: ${reason}`;
}

suite('egress corpus', () => {
  for (const kind of ['url', 'metadata']) {
    const cases = corpus.casesOfKind(kind).filter(({ input }) => isIP(String(input)) === 0);
    test(`there are URL cases of kind ${kind}`, () => assert.ok(cases.length > 10));
    for (const corpusCase of cases) {
      test(titleOf(corpusCase), async () => {
        const text = z.string().parse(corpusCase.input);
        checkOutcome(
          await judge(corpus.policyOf(corpusCase), text, defaultResolver(corpusCase)),
          corpusCase,
        );
      });
    }
  }

  const addresses = ['ip', 'metadata'].flatMap((kind) =>
    corpus.casesOfKind(kind).filter(({ input }) => kind === 'ip' || isIP(String(input)) !== 0),
  );
  test('there are address cases', () => assert.ok(addresses.length > 100));
  for (const corpusCase of addresses) {
    test(titleOf(corpusCase), () => {
      const policy = corpus.policyOf(corpusCase);
      const address = z.string().parse(corpusCase.input);
      const verdict = decideAddress(policy, {
        host: 'name.example',
        port: 443,
        address,
        stage: 'resolve',
      });
      assert.equal(verdict.kind, corpusCase.expect);
    });
  }

  const answer = z.object({
    A: z.array(z.string()).optional(),
    AAAA: z.array(z.string()).optional(),
    rcode: z.number().optional(),
    timeout: z.boolean().optional(),
  });
  const dnsInput = z.object({ url: z.string(), lookups: z.array(answer).min(1) });
  const dnsCases = corpus.casesOfKind('dns');
  test('there are cases of kind dns', () => assert.ok(dnsCases.length > 20));
  for (const corpusCase of dnsCases) {
    test(titleOf(corpusCase), async () => {
      const { url, lookups } = dnsInput.parse(corpusCase.input);
      const policy = corpus.policyOf(corpusCase);
      const outcomes: Outcome[] = [];
      for (const lookup of lookups) outcomes.push(await judge(policy, url, resolverOf(lookup)));
      // Each connection resolves again; an earlier good answer must not vouch for a later one.
      for (const earlier of outcomes.slice(0, -1)) assert.equal(earlier.expect, 'allow');
      const last = outcomes.at(-1);
      assert.ok(last !== undefined);
      checkOutcome(last, corpusCase);
      if (corpusCase.connectTo !== undefined)
        assert.deepEqual(last.addresses, corpusCase.connectTo);
    });
  }

  function resolverOf({ A = [], AAAA = [], rcode, timeout }: z.infer<typeof answer>): ResolveHost {
    if (timeout === true) return () => {};
    if (rcode === undefined) return answering([...A, ...AAAA]);
    const code = rcode === 3 ? 'ENOTFOUND' : 'EAI_AGAIN';
    return (_host, _options, callback) => callback(Object.assign(new Error(code), { code }), []);
  }
});
