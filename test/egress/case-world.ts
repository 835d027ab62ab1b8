// What one case runs in: the policy, and the two seams with the loopback listener behind them.

import type { EgressPolicy } from '#core/egress/egress-policy.ts';

import type { AnswerRequest, LoopbackWorld } from './loopback-world.ts';

export interface CaseWorld extends Pick<LoopbackWorld, 'openSocket' | 'dialled' | 'requests'> {
  readonly policy: EgressPolicy;
  readonly caPem: string;
  /** How the listeners answer from now on. */
  serve(answer: AnswerRequest): void;
}
