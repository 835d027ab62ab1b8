// `fairlead resolve-host`, started by ourselves only: asks the system's resolver once, over IPC. A
// lookup cannot be called off, and a program with one under way cannot end; this one can be killed.

import { z } from 'zod';

import { resolveWithSystem } from '#core/egress/pinned-lookup.ts';

export const READY = 'ready';

export const hostAnswerSchema = z.object({
  /** Of the error, such as ENOTFOUND. */
  code: z.string().optional(),
  addresses: z.array(z.object({ address: z.string(), family: z.number() })),
});
type SystemAnswer = z.infer<typeof hostAnswerSchema>;

export async function resolveHostCommand(): Promise<number> {
  const asked = new Promise<unknown>((resolve) => {
    process.once('message', resolve);
  });
  process.send?.(READY);
  const answer = await askSystem(z.string().parse(await asked));
  await new Promise((resolve) => {
    process.send?.(answer, resolve);
  });
  process.disconnect();
  return 0;
}

function askSystem(name: string): Promise<SystemAnswer> {
  return new Promise((resolve) => {
    resolveWithSystem(name, { all: true }, (error, addresses) => {
      if (error === null) resolve({ addresses: [...addresses] });
      else resolve({ code: error.code ?? 'UNKNOWN', addresses: [] });
    });
  });
}
