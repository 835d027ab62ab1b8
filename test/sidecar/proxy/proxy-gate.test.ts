import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { suite, test } from 'node:test';

import type { ProxyOutcome, ProxyRequest } from '#core/egress/egress-proxy.ts';
import type { ProofState } from '#core/egress/proxy-proof.ts';
import { ProxyGate } from '#sidecar/proxy/proxy-gate.ts';
import { FakeClock } from '#test/support/fake-clock.ts';

const REFUSED: ProxyOutcome = {
  kind: 'closed',
  verdict: 'deny',
  code: 'EGRESS_DENIED',
  reason: 'proxy-denied',
  address: '10.0.0.7',
};
const AWAY: ProxyOutcome = {
  kind: 'closed',
  verdict: 'failed',
  code: 'SERVER_UNAVAILABLE',
  reason: 'connect-refused',
};
const open = (address = '10.0.0.7'): ProxyOutcome => ({
  kind: 'open',
  socket: new Socket(),
  address,
});
const CALL: ProxyRequest = { host: 'mcp.test', port: 443, timeoutMs: 1_000 };

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A gate before a proxy that answers as the test says, or not at all (`undefined`). */
function scene(metadataName?: string) {
  const clock = new FakeClock();
  const states: string[] = [];
  const asked: string[] = [];
  const sockets: Socket[] = [];
  const cancelled: string[] = [];
  const proxy: { answer: (request: ProxyRequest) => ProxyOutcome | undefined } = {
    answer: ({ host }) => (host === CALL.host ? open() : REFUSED),
  };
  const gate = new ProxyGate({
    route: {
      connect: (request, done) => {
        asked.push(request.host);
        const outcome = proxy.answer(request);
        if (outcome?.kind === 'open') sockets.push(outcome.socket);
        let isOver = false;
        if (outcome !== undefined) setImmediate(() => isOver || done(outcome));
        return () => {
          isOver = true;
          cancelled.push(request.host);
        };
      },
    },
    resolvesLocally: true,
    metadataName,
    clock,
    random: () => 1,
    onState: (state: ProofState) => states.push(state.kind),
  });
  const proofs = (): number => asked.filter((host) => host === 'fd00:ec2::254').length / 2;
  const outcomes: ProxyOutcome[] = [];
  const call = (): (() => void) => gate.connect(CALL, (outcome) => outcomes.push(outcome));
  const codes = (): string[] =>
    outcomes.map((outcome) => (outcome.kind === 'open' ? 'open' : outcome.code));
  const prove = async (): Promise<void> => {
    gate.prove();
    await settle();
    await settle();
  };
  return { clock, gate, proxy, states, asked, sockets, cancelled, proofs, call, codes, prove };
}

suite('the gate before a proxy', () => {
  test('opens with the proof, for those who waited, too', async () => {
    const { gate, states, asked, call, codes, prove } = scene('m.example.com');
    call();
    assert.equal(gate.refusal(), undefined);
    assert.deepEqual(asked, []);
    await prove();
    await settle();
    assert.deepEqual([states, codes()], [['proven'], ['open']]);
    assert.deepEqual(asked.slice(0, -1), [
      '169.254.169.254',
      '169.254.169.254',
      'fd00:ec2::254',
      'fd00:ec2::254',
      'm.example.com',
      'm.example.com',
    ]);
    gate.close();
  });

  test('stays closed when one target is let through, and no byte goes to it', async () => {
    const { gate, proxy, states, sockets, cancelled, call, codes, prove, clock } = scene();
    // The others never answer: the verdict does not wait for them.
    proxy.answer = ({ host, port }) =>
      host === '169.254.169.254' && port === 80 ? open() : undefined;
    call();
    await prove();
    clock.advance(0);
    assert.deepEqual([states, codes()], [['lets-through'], ['EGRESS_PROXY_OPEN']]);
    assert.equal(gate.refusal()?.code, 'EGRESS_PROXY_OPEN');
    assert.deepEqual(
      sockets.map(({ destroyed, bytesWritten }) => [destroyed, bytesWritten]),
      [[true, 0]],
    );
    assert.equal(cancelled.length, 3);
    gate.close();
  });

  test('is asked again until there is an answer, with growing delays, and no call goes out', async () => {
    const { gate, clock, proxy, states, call, codes, proofs, prove } = scene();
    proxy.answer = () => AWAY;
    await prove();
    assert.deepEqual([states, proofs()], [['unproven'], 1]);
    call();
    clock.advance(0);
    assert.deepEqual(codes(), ['EGRESS_PROXY_UNPROVEN']);
    // There is no tunnel yet that could go on.
    assert.equal(gate.refusal(), undefined);
    for (const [delayMs, count] of [
      [1_000, 2],
      [2_000, 3],
      [4_000, 4],
    ] as const) {
      clock.advance(delayMs - 1);
      await settle();
      assert.equal(proofs(), count - 1);
      clock.advance(1);
      await settle();
      await settle();
      assert.equal(proofs(), count);
    }
    proxy.answer = ({ host }) => (host === CALL.host ? open() : REFUSED);
    clock.advance(8_000);
    await settle();
    await settle();
    assert.equal(states.at(-1), 'proven');
    assert.equal(gate.refusal(), undefined);
    gate.close();
  });

  test('a call waits for a silent proxy no longer than it may', async () => {
    const { gate, clock, proxy, call, codes, prove } = scene();
    proxy.answer = () => undefined;
    call();
    await prove();
    clock.advance(699);
    assert.deepEqual(codes(), []);
    clock.advance(1);
    assert.deepEqual(codes(), ['EGRESS_PROXY_UNPROVEN']);
    gate.close();
  });

  test('a call that is given up while it waits is not made', async () => {
    const { gate, call, codes, asked, prove } = scene();
    const cancel = call();
    cancel();
    await prove();
    assert.deepEqual([codes(), asked.includes(CALL.host)], [[], false]);
    gate.close();
  });

  test('a proxy that was good is asked now and then', async () => {
    const { gate, clock, proofs, prove } = scene();
    await prove();
    clock.advance(299_000);
    await settle();
    assert.equal(proofs(), 1);
    clock.advance(1_000);
    await settle();
    await settle();
    assert.equal(proofs(), 2);
    gate.close();
  });

  test('one that was away proves itself again before another tunnel is opened', async () => {
    const { gate, clock, proxy, proofs, states, asked, call, codes, prove } = scene();
    await prove();
    clock.advance(500);
    proxy.answer = () => AWAY;
    call();
    await settle();
    call();
    assert.deepEqual([proofs(), codes()], [1, ['SERVER_UNAVAILABLE']]);
    // Back, and bad: the call that waits is not the one to find out.
    proxy.answer = ({ port }) => (port === 80 ? open() : REFUSED);
    clock.advance(500);
    await settle();
    await settle();
    clock.advance(0);
    assert.equal(proofs(), 2);
    assert.deepEqual(codes(), ['SERVER_UNAVAILABLE', 'EGRESS_PROXY_OPEN']);
    assert.deepEqual(states, ['proven', 'lets-through']);
    assert.equal(asked.filter((host) => host === CALL.host).length, 1);
    gate.close();
  });

  test('tunnels that are open go on while a proxy that was good gives no answer', async () => {
    const { gate, clock, proxy, call, codes, prove } = scene();
    await prove();
    proxy.answer = () => AWAY;
    call();
    await settle();
    clock.advance(1_000);
    await settle();
    await settle();
    call();
    clock.advance(0);
    assert.deepEqual(codes(), ['SERVER_UNAVAILABLE', 'EGRESS_PROXY_UNPROVEN']);
    assert.equal(gate.refusal(), undefined);
    gate.close();
  });

  test('a tunnel at another address is a sign of another proxy, a refusal or an ill server is none', async () => {
    const { gate, clock, proxy, proofs, call, prove } = scene();
    await prove();
    clock.advance(60_000);
    for (const outcome of [
      REFUSED,
      { ...AWAY, reason: 'proxy-error' } as ProxyOutcome,
      { ...AWAY, reason: 'proxy-timeout' } as ProxyOutcome,
      open('10.0.0.7'),
    ]) {
      proxy.answer = ({ host }) => (host === CALL.host ? outcome : REFUSED);
      call();
      await settle();
      clock.advance(2_000);
      await settle();
    }
    assert.equal(proofs(), 1);
    proxy.answer = ({ host }) => (host === CALL.host ? open('10.0.0.8') : REFUSED);
    call();
    await settle();
    clock.advance(1_000);
    await settle();
    await settle();
    assert.equal(proofs(), 2);
    gate.close();
  });

  test('a good proxy that flips is found out, and one that flips back', async () => {
    const { gate, proxy, states, prove } = scene();
    await prove();
    proxy.answer = ({ port }) => (port === 443 ? REFUSED : open());
    await prove();
    proxy.answer = () => AWAY;
    await prove();
    assert.equal(gate.refusal()?.code, 'EGRESS_PROXY_OPEN');
    proxy.answer = () => REFUSED;
    await prove();
    assert.deepEqual(states, ['proven', 'lets-through', 'lets-through', 'proven']);
    gate.close();
  });

  test('a proof that is wanted while one is under way takes the place of it', async () => {
    const { gate, proofs, states } = scene();
    gate.prove();
    gate.prove();
    for (let turn = 0; turn < 4; turn += 1) await settle();
    assert.deepEqual([proofs(), states], [2, ['proven']]);
    gate.close();
  });

  test('that is closed leaves no timer behind, and nobody waiting', async () => {
    const { gate, clock, proxy, call, codes, states } = scene();
    proxy.answer = () => undefined;
    call();
    gate.prove();
    gate.close();
    clock.advance(0);
    await settle();
    assert.deepEqual([codes(), clock.pendingTimers, states], [['EGRESS_PROXY_UNPROVEN'], 0, []]);
  });
});
