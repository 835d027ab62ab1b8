// Lets requests through to one egress proxy while that has proved that it refuses metadata addresses
// (core/egress/proxy-proof.ts decides; here is the asking). It asks at the start, again when
// something looks like another proxy, and from time to time; a proxy that is away is asked again with
// growing delays. It holds up nobody but who wants to go through, and sends nothing but CONNECTs.

import type { Clock, TimerHandle } from '#core/clock.ts';
import type {
  EgressProxy,
  ProxyOutcome,
  ProxyRefusal,
  ProxyRequest,
} from '#core/egress/egress-proxy.ts';
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
  UNPROVEN,
} from '#core/egress/proxy-proof.ts';
import type { ProofState, ProofVerdict } from '#core/egress/proxy-proof.ts';
import type { ProxyRoute } from '#core/egress/proxy-route.ts';

export interface ProxyGateOptions {
  readonly route: Pick<ProxyRoute, 'connect'>;
  readonly resolvesLocally: boolean;
  readonly metadataName: string | undefined;
  readonly clock: Clock;
  readonly random?: () => number;
  readonly onState: (state: ProofState, previous: ProofState) => void;
}

/** For one CONNECT of a proof, name, TLS and tunnel. */
const PROBE_MS = 5_000;
/** Who waits for the first proof still needs time for a tunnel of its own. */
const WAIT_SHARE = 0.7;

interface Waiter {
  proceed(): void;
}

export class ProxyGate implements EgressProxy {
  readonly resolvesLocally: boolean;
  readonly #options: ProxyGateOptions;
  readonly #random: () => number;
  readonly #waiting = new Set<Waiter>();
  /** That have proved themselves; another address may be another proxy. */
  readonly #addresses = new Set<string>();
  #state: ProofState = { kind: 'pending' };
  /** Of new tunnels. */
  #refusal: ProxyRefusal | undefined;
  #proving: AbortController | undefined;
  #isAgainWanted = false;
  #timer: TimerHandle | undefined;
  #dueMs = Infinity;
  #lastProofMs = -Infinity;
  #isClosed = false;

  constructor(options: ProxyGateOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.resolvesLocally = options.resolvesLocally;
  }

  get state(): ProofState {
    return this.#state;
  }

  /**
   * Tunnels that are open lead through a proxy that had proved itself: they go on while that gives no
   * answer, as when it ends in order, and end with the news that it lets metadata addresses through.
   */
  refusal(): ProxyRefusal | undefined {
    return this.#state.kind === 'lets-through' ? this.#refusal : undefined;
  }

  /** Asks now; a proof that is under way already does not count then. */
  prove(): void {
    if (this.#isClosed) return;
    if (this.#proving !== undefined) {
      this.#isAgainWanted = true;
      return;
    }
    this.#timer?.cancel();
    const proving = new AbortController();
    this.#proving = proving;
    void this.#askAll(proving.signal).then((verdict) => {
      // What still runs is of no interest once one has been let through.
      proving.abort();
      this.#proving = undefined;
      if (this.#isClosed) return;
      const isOutdated = this.#isAgainWanted && verdict.kind !== 'let-through';
      this.#isAgainWanted = false;
      if (isOutdated) this.prove();
      else this.#conclude(verdict);
    });
  }

  connect(request: ProxyRequest, done: (outcome: ProxyOutcome) => void): () => void {
    if (this.#state.kind === 'pending' && !this.#isClosed) return this.#wait(request, done);
    return this.#go(request, done);
  }

  /** No proofs any more; tunnels that are open stay open. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#proving?.abort();
    if (this.#state.kind === 'pending') this.#refusal = UNPROVEN;
    this.#releaseWaiting();
  }

  /** A closed gate that never had an answer has no way through. */
  #go(request: ProxyRequest, done: (outcome: ProxyOutcome) => void): () => void {
    const refusal = this.#refusal;
    if (refusal !== undefined) {
      const timer = this.#options.clock.setTimer(0, () => done(refusal));
      return () => timer.cancel();
    }
    return this.#options.route.connect(request, (outcome) => {
      this.#notice(outcome);
      done(outcome);
    });
  }

  #wait(request: ProxyRequest, done: (outcome: ProxyOutcome) => void): () => void {
    const { clock } = this.#options;
    const startMs = clock.monotonicMs();
    let cancel = (): void => {
      timer.cancel();
      this.#waiting.delete(waiter);
    };
    const waiter: Waiter = {
      proceed: () => {
        timer.cancel();
        const timeoutMs = Math.max(1, request.timeoutMs - (clock.monotonicMs() - startMs));
        cancel = this.#go({ ...request, timeoutMs }, done);
      },
    };
    const timer = clock.setTimer(Math.ceil(request.timeoutMs * WAIT_SHARE), () => {
      this.#waiting.delete(waiter);
      done(UNPROVEN);
    });
    this.#waiting.add(waiter);
    return () => cancel();
  }

  #releaseWaiting(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const waiter of waiting) waiter.proceed();
  }

  #notice(outcome: ProxyOutcome): void {
    if (this.#isClosed || this.#state.kind !== 'proven') return;
    const sinceLastMs = this.#options.clock.monotonicMs() - this.#lastProofMs;
    switch (judgeTunnel(outcome, this.#addresses)) {
      case 'doubtful':
        this.#state = { kind: 'pending' };
        this.#addresses.clear();
        // A proof that is under way may have begun before the proxy went away.
        if (this.#proving !== undefined) this.#isAgainWanted = true;
        else this.#askWithin(doubtedDelayMs(sinceLastMs));
        break;
      case 'curious':
        this.#askWithin(nudgedDelayMs(sinceLastMs, this.#random()));
        break;
      case 'fine':
        break;
    }
  }

  /** Never later than it would be anyhow. */
  #askWithin(delayMs: number): void {
    const dueMs = this.#options.clock.monotonicMs() + delayMs;
    if (this.#proving === undefined && dueMs < this.#dueMs) this.#schedule(delayMs);
  }

  /** All at once; resolves as soon as one was let through, else when all have ended. */
  async #askAll(signal: AbortSignal): Promise<ProofVerdict> {
    const addresses = new Set<string>();
    const opened = Promise.withResolvers<ProofVerdict>();
    const probes = proofTargets(this.#options.metadataName).map(async (target) => {
      const outcome = await this.#ask({ ...target, timeoutMs: PROBE_MS }, signal);
      const { address } = outcome;
      if (address !== undefined) addresses.add(address);
      const verdict = judgeProbe(target, outcome);
      if (verdict.kind === 'let-through') opened.resolve(verdict);
      return verdict;
    });
    const verdict = await Promise.race([opened.promise, Promise.all(probes).then(judgeProof)]);
    if (verdict.kind === 'refused') for (const address of addresses) this.#addresses.add(address);
    return verdict;
  }

  #ask(request: ProxyRequest, signal: AbortSignal): Promise<ProxyOutcome> {
    return new Promise((resolve) => {
      const giveUp = (): void => {
        cancel();
        resolve(UNPROVEN);
      };
      const cancel = this.#options.route.connect(request, (outcome) => {
        signal.removeEventListener('abort', giveUp);
        // Not a byte goes to a metadata service.
        if (outcome.kind === 'open') outcome.socket.destroy();
        resolve(outcome);
      });
      signal.addEventListener('abort', giveUp);
    });
  }

  #conclude(verdict: ProofVerdict): void {
    const { clock, onState } = this.#options;
    const previous = this.#state;
    this.#lastProofMs = clock.monotonicMs();
    this.#state = nextProofState(previous, verdict, this.#lastProofMs);
    this.#refusal = proofRefusal(this.#state);
    if (this.#refusal !== undefined) this.#addresses.clear();
    this.#schedule(proofDelayMs(this.#state, this.#random()));
    this.#releaseWaiting();
    onState(this.#state, previous);
  }

  #schedule(delayMs: number): void {
    this.#timer?.cancel();
    this.#dueMs = this.#options.clock.monotonicMs() + delayMs;
    this.#timer = this.#options.clock.setTimer(delayMs, () => this.prove(), { unref: true });
  }
}
