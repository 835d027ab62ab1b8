// Whether the egress proxy may be trusted with requests: it is asked for metadata addresses, and for
// a name that resolves to one, and has to refuse each of them. One that lets a single one through is
// used for nothing. No answer proves nothing: what was proven stays so for a while, what was found
// open stays closed, and it is asked again. Pure: states, verdicts and times; the asking is the
// sidecar's.

import type { TunnelTarget } from './connect-answer.ts';
import type { ProxyOutcome, ProxyRefusal } from './egress-proxy.ts';

/** Both ports: a rule about ports alone must not pass for one about addresses. */
const METADATA_TARGETS: readonly TunnelTarget[] = [
  { host: '169.254.169.254', port: 80 },
  { host: '169.254.169.254', port: 443 },
  { host: 'fd00:ec2::254', port: 80 },
  { host: 'fd00:ec2::254', port: 443 },
];
const NAME_PORTS = [80, 443];

/** As long as nothing says otherwise. */
const PROVEN_INTERVAL_MS = 300_000;
/** How long a proof holds while it can't be repeated. */
const MAX_PROOF_AGE_MS = 900_000;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
/** Between two proofs when signs of another proxy bring the next one forward. */
const MIN_INTERVAL_MS = 5_000;
/** The same, when tunnels wait for it. */
const MIN_WAITED_INTERVAL_MS = 1_000;

export type ProofVerdict =
  | { readonly kind: 'refused' }
  | { readonly kind: 'let-through'; readonly target: TunnelTarget }
  | { readonly kind: 'unknown'; readonly reason: ProxyRefusal['reason'] };

export type ProofState =
  /** The first proof, or the first after the proxy was away, is due; new tunnels wait for it. */
  | { readonly kind: 'pending' }
  | { readonly kind: 'proven'; readonly provenMs: number; readonly failures: number }
  | {
      readonly kind: 'unproven';
      readonly reason: ProxyRefusal['reason'];
      readonly failures: number;
    }
  | { readonly kind: 'lets-through'; readonly target: TunnelTarget };

/** What the proxy has to refuse. */
export function proofTargets(metadataName: string | undefined): readonly TunnelTarget[] {
  if (metadataName === undefined) return METADATA_TARGETS;
  return [...METADATA_TARGETS, ...NAME_PORTS.map((port) => ({ host: metadataName, port }))];
}

/** What the proxy's word on one target proves. Its own refusal alone is one: an error is not. */
export function judgeProbe(target: TunnelTarget, outcome: ProxyOutcome): ProofVerdict {
  if (outcome.kind === 'open') return { kind: 'let-through', target };
  const { reason } = outcome;
  return reason === 'proxy-denied' ? { kind: 'refused' } : { kind: 'unknown', reason };
}

/** One that is open outweighs all others, one without an answer the refused ones. */
export function judgeProof(probes: readonly ProofVerdict[]): ProofVerdict {
  return (
    probes.find(({ kind }) => kind === 'let-through') ??
    probes.find(({ kind }) => kind === 'unknown') ?? { kind: 'refused' }
  );
}

export function nextProofState(
  state: ProofState,
  verdict: ProofVerdict,
  nowMs: number,
): ProofState {
  switch (verdict.kind) {
    case 'refused':
      return { kind: 'proven', provenMs: nowMs, failures: 0 };
    case 'let-through':
      return { kind: 'lets-through', target: verdict.target };
    case 'unknown':
      return afterNoAnswer(state, verdict.reason, nowMs);
    default:
      return verdict satisfies never;
  }
}

function afterNoAnswer(
  state: ProofState,
  reason: ProxyRefusal['reason'],
  nowMs: number,
): ProofState {
  switch (state.kind) {
    case 'lets-through':
      return state;
    case 'proven':
      return nowMs - state.provenMs < MAX_PROOF_AGE_MS
        ? { ...state, failures: state.failures + 1 }
        : { kind: 'unproven', reason, failures: state.failures + 1 };
    case 'unproven':
      return { kind: 'unproven', reason, failures: state.failures + 1 };
    case 'pending':
      return { kind: 'unproven', reason, failures: 1 };
    default:
      return state satisfies never;
  }
}

/** When to ask again; `random` from 0 to 1, so that not all sidecars ask in the same second. */
export function proofDelayMs(state: ProofState, random: number): number {
  switch (state.kind) {
    case 'pending':
      return 0;
    case 'lets-through':
      return jittered(MAX_RETRY_MS, random);
    case 'proven':
      return state.failures === 0
        ? jittered(PROVEN_INTERVAL_MS, random)
        : retryDelayMs(state.failures, random);
    case 'unproven':
      return retryDelayMs(state.failures, random);
    default:
      return state satisfies never;
  }
}

/** When to ask again after a sign that the proxy is perhaps another one now. */
export function nudgedDelayMs(sinceLastMs: number, random: number): number {
  return Math.max(MIN_INTERVAL_MS - sinceLastMs, jittered(FIRST_RETRY_MS, random));
}

/** When to ask again after the proxy could not be reached, and tunnels wait for the proof. */
export function doubtedDelayMs(sinceLastMs: number): number {
  return Math.max(MIN_WAITED_INTERVAL_MS - sinceLastMs, 0);
}

/**
 * What a tunnel tells of the proxy in passing. One that can't be reached, or not under its name, may
 * be another one when it is back: `doubtful`. One that behaves oddly, or is elsewhere, is asked again
 * soon: `curious`. What it says about a target, its silence included, may well be the target's fault.
 */
export function judgeTunnel(
  outcome: ProxyOutcome,
  provenAddresses: ReadonlySet<string>,
): 'fine' | 'curious' | 'doubtful' {
  if (outcome.kind === 'open') return provenAddresses.has(outcome.address) ? 'fine' : 'curious';
  switch (outcome.reason) {
    case 'proxy-denied':
    case 'proxy-error':
    case 'proxy-timeout':
      return 'fine';
    case 'proxy-gone':
    case 'proxy-answer':
    case 'proxy-certificate':
      return 'curious';
    default:
      return 'doubtful';
  }
}

function retryDelayMs(failures: number, random: number): number {
  return jittered(Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 10)), random);
}

function jittered(ms: number, random: number): number {
  return ms * (0.5 + random * 0.5);
}

const LETS_THROUGH: ProxyRefusal = {
  kind: 'closed',
  verdict: 'deny',
  code: 'EGRESS_PROXY_OPEN',
  reason: 'proxy-lets-through',
};
export const UNPROVEN: ProxyRefusal = {
  kind: 'closed',
  verdict: 'failed',
  code: 'EGRESS_PROXY_UNPROVEN',
  reason: 'proxy-unproven',
};

/** Why no tunnel may be opened now; undefined also while a proof is waited for. */
export function proofRefusal(state: ProofState): ProxyRefusal | undefined {
  if (state.kind === 'lets-through') return LETS_THROUGH;
  return state.kind === 'unproven' ? UNPROVEN : undefined;
}
