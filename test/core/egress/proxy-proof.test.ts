import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { suite, test } from 'node:test';

import {
  doubtedDelayMs,
  judgeProbe,
  judgeProof,
  judgeTunnel,
  nextProofState,
  nudgedDelayMs,
  proofDelayMs,
  proofRefusal,
  proofTargets,
} from '#core/egress/proxy-proof.ts';
import type { ProxyOutcome, ProxyRefusal } from '#core/egress/egress-proxy.ts';
import type { ProofState, ProofVerdict } from '#core/egress/proxy-proof.ts';

const TARGET = { host: '169.254.169.254', port: 80 };
const REFUSED: ProofVerdict = { kind: 'refused' };
const OPEN: ProofVerdict = { kind: 'let-through', target: TARGET };
const AWAY: ProofVerdict = { kind: 'unknown', reason: 'connect-refused' };
const MINUTE = 60_000;

suite('the proof of a proxy', () => {
  test('asks for the metadata service in both families, and for the name that is configured', () => {
    const text = (name?: string): string[] =>
      proofTargets(name).map(({ host, port }) => `${host} ${String(port)}`);
    const addresses = [
      '169.254.169.254 80',
      '169.254.169.254 443',
      'fd00:ec2::254 80',
      'fd00:ec2::254 443',
    ];
    assert.deepEqual(text(), addresses);
    assert.deepEqual(text('m.example.com'), [
      ...addresses,
      'm.example.com 80',
      'm.example.com 443',
    ]);
  });

  const closed = { kind: 'closed', code: 'SERVER_UNAVAILABLE' } as const;
  test("is the proxy's own refusal, and no error of it", () => {
    const probe = (outcome: Parameters<typeof judgeProbe>[1]) => judgeProbe(TARGET, outcome);
    assert.deepEqual(
      probe({ ...closed, verdict: 'deny', code: 'EGRESS_DENIED', reason: 'proxy-denied' }),
      REFUSED,
    );
    assert.deepEqual(probe({ kind: 'open', socket: new Socket(), address: '127.0.0.1' }), OPEN);
    for (const reason of ['proxy-error', 'proxy-timeout', 'proxy-gone', 'connect-refused'] as const)
      assert.deepEqual(probe({ ...closed, verdict: 'failed', reason }), {
        kind: 'unknown',
        reason,
      });
    // Our own refusal to go to that proxy is none of the proxy's.
    assert.equal(probe({ ...closed, verdict: 'deny', reason: 'special-address' }).kind, 'unknown');
  });

  test('one that is open outweighs all, one without an answer the refused ones', () => {
    assert.deepEqual(judgeProof([REFUSED, REFUSED]), REFUSED);
    assert.deepEqual(judgeProof([REFUSED, AWAY, REFUSED]), AWAY);
    assert.deepEqual(judgeProof([REFUSED, AWAY, OPEN]), OPEN);
  });
});

suite('the state of a proxy', () => {
  const proven: ProofState = { kind: 'proven', provenMs: 1_000, failures: 0 };
  const unproven: ProofState = { kind: 'unproven', reason: 'proxy-gone', failures: 1 };
  const open: ProofState = { kind: 'lets-through', target: TARGET };
  const pending: ProofState = { kind: 'pending' };
  const rows: readonly (readonly [string, ProofState, ProofVerdict, number, ProofState])[] = [
    ...[pending, proven, unproven, open].flatMap(
      (state) =>
        [
          [
            `${state.kind}, refused: proven`,
            state,
            REFUSED,
            9_000,
            { kind: 'proven', provenMs: 9_000, failures: 0 },
          ],
          [`${state.kind}, let through: not used`, state, OPEN, 9_000, open],
        ] as const,
    ),
    [
      'pending, no answer: unproven',
      pending,
      AWAY,
      9_000,
      { kind: 'unproven', reason: 'connect-refused', failures: 1 },
    ],
    [
      'unproven, no answer: still, with the newest reason',
      unproven,
      AWAY,
      9_000,
      { kind: 'unproven', reason: 'connect-refused', failures: 2 },
    ],
    ['open, no answer: still not used', open, AWAY, 9_000, open],
    [
      'proven, no answer: good for a while',
      proven,
      AWAY,
      1_000 + 15 * MINUTE - 1,
      { kind: 'proven', provenMs: 1_000, failures: 1 },
    ],
    [
      'proven long ago, no answer: no longer',
      { ...proven, failures: 40 },
      AWAY,
      1_000 + 15 * MINUTE,
      { kind: 'unproven', reason: 'connect-refused', failures: 41 },
    ],
  ];
  for (const [title, state, verdict, nowMs, expected] of rows)
    test(title, () => assert.deepEqual(nextProofState(state, verdict, nowMs), expected));

  test('refuses requests unless proven, and lets them wait for the first proof', () => {
    assert.deepEqual(
      [pending, proven, unproven, open].map((state) => proofRefusal(state)?.code),
      [undefined, undefined, 'EGRESS_PROXY_UNPROVEN', 'EGRESS_PROXY_OPEN'],
    );
  });

  test('is asked again: soon and ever slower without an answer, now and then with one', () => {
    const most = (state: ProofState): number => proofDelayMs(state, 1);
    const away = (failures: number): ProofState => ({ ...unproven, failures });
    assert.deepEqual(
      [1, 2, 3, 5, 6, 1_000].map((count) => most(away(count))),
      [1_000, 2_000, 4_000, 16_000, 30_000, 30_000],
    );
    assert.deepEqual([most(proven), most({ ...proven, failures: 2 })], [5 * MINUTE, 2_000]);
    assert.equal(most(open), 30_000);
    for (const state of [proven, unproven, open])
      assert.equal(proofDelayMs(state, 0), most(state) / 2);
  });

  test('is asked sooner at a sign of another proxy, but not again and again', () => {
    assert.equal(nudgedDelayMs(60_000, 1), 1_000);
    assert.equal(nudgedDelayMs(60_000, 0), 500);
    assert.equal(nudgedDelayMs(1_000, 1), 4_000);
    assert.deepEqual([0, 400, 1_000, 9_000].map(doubtedDelayMs), [1_000, 600, 0, 0]);
  });
});

suite('what a tunnel tells of its proxy', () => {
  const closed = (reason: ProxyRefusal['reason']): ProxyOutcome => ({
    kind: 'closed',
    verdict: 'failed',
    code: 'SERVER_UNAVAILABLE',
    reason,
  });
  const open = (address: string): ProxyOutcome => ({ kind: 'open', socket: new Socket(), address });
  const rows: readonly (readonly [string, ProxyOutcome, ReturnType<typeof judgeTunnel>])[] = [
    ['open where it proved itself', open('10.0.0.7'), 'fine'],
    ['open elsewhere', open('10.0.0.8'), 'curious'],
    ...(['proxy-denied', 'proxy-error', 'proxy-timeout'] as const).map(
      (reason) => [reason, closed(reason), 'fine'] as const,
    ),
    ...(['proxy-gone', 'proxy-answer', 'proxy-certificate'] as const).map(
      (reason) => [reason, closed(reason), 'curious'] as const,
    ),
    ...(
      [
        'connect-refused',
        'connect-timeout',
        'connect-failed',
        'tls-untrusted',
        'tls-name',
        'dns-failed',
        'special-address',
      ] as const
    ).map((reason) => [reason, closed(reason), 'doubtful'] as const),
  ];
  for (const [title, outcome, expected] of rows)
    test(`${title}: ${expected}`, () =>
      assert.equal(judgeTunnel(outcome, new Set(['10.0.0.7'])), expected));
});
