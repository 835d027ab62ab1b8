// The explanation against the guard: over the whole corpus the verdict and the first denying step are
// what the guard itself says; with a resolver of our own, every address is told.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { suite, test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import type { ServerConfig } from '#core/config/sidecar-config.ts';
import { decideUrl, judgeUrlSteps } from '#core/egress/decide-egress.ts';
import type { ResolveHost } from '#core/egress/pinned-lookup.ts';
import { explainServer } from '#operator/dev/explain-egress.ts';
import type { ExplainedServer } from '#operator/dev/explain-egress.ts';
import { parseEgressCorpus } from '#test/egress/corpus-file.ts';
import { serverConfig } from '#test/support/sidecar-config.ts';

const corpus = parseEgressCorpus(
  readFileSync(new URL('../../corpus/egress.json', import.meta.url), 'utf8'),
);

test('over the corpus, the first step with a fault is the verdict of the URL policy', () => {
  let judged = 0;
  for (const entry of corpus.entries) {
    if (entry.kind !== 'case' || entry.given.kind !== 'url') continue;
    const { input } = entry.given;
    const url = typeof input === 'string' ? URL.parse(input) : null;
    if (url === null) continue;
    const policy = corpus.policyOf(entry.given);
    const verdict = decideUrl(policy, url);
    const first = [...judgeUrlSteps(policy, url)].find(({ fault }) => fault !== undefined);
    const reason =
      verdict.kind === 'deny' && verdict.stage === 'url-policy' ? verdict.reason : undefined;
    assert.equal(first?.fault, reason, entry.id);
    judged += 1;
  }
  assert.ok(judged > 100);
});

function answering(...addresses: readonly string[]): ResolveHost {
  return (_host, _options, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: isIP(address) })),
    );
}

function explain(resolve: ResolveHost, connectTimeoutMs = 5_000): Promise<ExplainedServer> {
  const made = serverConfig('far');
  const server: ServerConfig = {
    ...made,
    endpoint: 'https://mcp.example.com/mcp',
    egress: { allowedHosts: ['mcp.example.com'], allowedPorts: [443], inClusterExceptions: [] },
    limits: { ...made.limits, connectTimeoutMs },
  };
  return explainServer(server, new URL(server.endpoint), {
    isDevelopment: false,
    isResolving: true,
    clock: systemClock,
    resolve,
  });
}

function addressLines({ steps }: ExplainedServer): string[] {
  return steps
    .filter(({ stage }) => stage === 'resolve')
    .map(({ verdict, address, reason, detail }) =>
      [verdict, address, reason, detail].filter((word) => word !== null).join(' '),
    );
}

suite('addresses', () => {
  const rows: readonly {
    readonly title: string;
    readonly resolve: ResolveHost;
    readonly words: string;
    readonly lines: readonly string[];
    readonly remedy?: RegExp;
  }[] = [
    {
      title: 'all public',
      resolve: answering('93.184.215.14', '2606:4700::1111'),
      words: 'allowed resolve ok',
      lines: ['allow 93.184.215.14', 'allow 2606:4700::1111'],
    },
    {
      title: 'one private among public ones denies, and those after it are told too',
      resolve: answering('93.184.215.14', '10.0.0.1', '93.184.215.15'),
      words: 'denied resolve special-address',
      lines: [
        'allow 93.184.215.14',
        'deny 10.0.0.1 special-address private-use',
        'allow 93.184.215.15',
      ],
      remedy: /spec\.egress\.inClusterExceptions/,
    },
    {
      title: 'metadata, which no field opens',
      resolve: answering('169.254.169.254'),
      words: 'denied resolve special-address',
      lines: ['deny 169.254.169.254 special-address link-local'],
      remedy: /no field of McpServer opens/,
    },
    {
      title: 'an empty answer',
      resolve: answering(),
      words: 'denied resolve no-address',
      lines: ['deny no-address'],
      remedy: /DNS record/,
    },
    {
      title: 'a resolver that fails',
      resolve: (_host, _options, callback) =>
        callback(Object.assign(new Error('x'), { code: 'EAI_AGAIN' }), []),
      words: 'unknown resolve dns-failed',
      lines: ['unknown dns-failed EAI_AGAIN'],
    },
  ];
  for (const { title, resolve, words, lines, remedy } of rows) {
    test(title, async () => {
      const explained = await explain(resolve);
      const { verdict, stage, reason } = explained;
      assert.equal(`${verdict} ${stage} ${reason}`, words);
      assert.deepEqual(addressLines(explained), lines);
      if (remedy === undefined) assert.equal(explained.remedy, null);
      else assert.match(explained.remedy ?? '', remedy);
    });
  }

  test('a resolver that never answers is unknown when its time is over', async () => {
    const explained = await explain(() => {}, 20);
    assert.equal(explained.verdict, 'unknown');
    assert.deepEqual(addressLines(explained), ['unknown dns-timeout']);
  });
});
