// Start to first call: each target is started afresh in every round, alone, and stopped again.
// The sidecar starts twice, once with servers in its config that are down.

import type { TargetName } from './bench-options.ts';
import { findFreePort, openSilentServer } from './loopback-ports.ts';
import type { MetricId, Results } from './results.ts';
import { startTarget, type TargetContext } from './targets.ts';

export interface StartsOptions {
  readonly context: TargetContext;
  readonly targets: readonly TargetName[];
  readonly results: Results;
  readonly rounds: number;
  readonly say: (line: string) => void;
}

export async function measureStarts({
  context,
  targets,
  results,
  rounds,
  say,
}: StartsOptions): Promise<void> {
  await using silent = await openSilentServer();
  say(`starting each target ${rounds + 1} times ...`);
  // The first round reads every file from the disk for all the later ones and is not counted.
  for (let round = 0; round <= rounds; round += 1) {
    for (const name of targets) {
      const record = (metric: MetricId, ms: number): void => {
        if (round > 0) results.add(name, metric, ms);
      };
      record('startMs', await timeStart(name, context, []));
      if (name === 'sidecar')
        record('startDeadMs', await timeStart(name, context, [await findFreePort(), silent.port]));
    }
  }
}

async function timeStart(
  name: TargetName,
  context: TargetContext,
  deadPorts: readonly number[],
): Promise<number> {
  const target = await startTarget(name, context, deadPorts);
  await target.process[Symbol.asyncDispose]();
  return target.firstCallMs;
}
