// The sidecar's status page as `fairlead dev` reads it.

import { z } from 'zod';

import type { Clock } from '#core/clock.ts';

import type { ServerView } from './dev-report.ts';
import { getLocal } from './local-http.ts';

const statusSchema = z.object({
  config: z.object({ runningRevision: z.string().nullish() }),
  servers: z.array(
    z.object({
      alias: z.string(),
      namespace: z.string(),
      name: z.string(),
      state: z.enum(['pending', 'ok', 'unavailable']),
      reason: z.string().optional(),
      era: z.string().optional(),
      protocolVersion: z.string().optional(),
      tools: z.array(
        z.object({
          name: z.string(),
          title: z.string().optional(),
          description: z.string().optional(),
        }),
      ),
    }),
  ),
});

export interface SidecarStatus {
  readonly revision: string | undefined;
  readonly servers: readonly ServerView[];
}

export async function readStatus(url: string): Promise<SidecarStatus | undefined> {
  const answer = await getLocal(url);
  if (answer === undefined) return undefined;
  const parsed = statusSchema.safeParse(JSON.parse(answer.text));
  if (!parsed.success) return undefined;
  // zod's optional members are absent or present; the view's type says the same.
  return {
    revision: parsed.data.config.runningRevision ?? undefined,
    servers: parsed.data.servers as readonly ServerView[],
  };
}

const POLL_MS = 100;

/** The status once it runs `revision` and has asked every server; the last one seen when time is up. */
export async function untilSettled(
  url: string,
  revision: string,
  options: { readonly clock: Clock; readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<SidecarStatus | undefined> {
  const { clock, timeoutMs, signal } = options;
  const deadlineMs = clock.monotonicMs() + timeoutMs;
  let status: SidecarStatus | undefined;
  for (;;) {
    status = (await readStatus(url)) ?? status;
    const isSettled =
      status?.revision === revision && status.servers.every(({ state }) => state !== 'pending');
    if (isSettled || signal.aborted || clock.monotonicMs() >= deadlineMs) return status;
    await clock.sleep(POLL_MS, signal).catch(() => {});
  }
}
