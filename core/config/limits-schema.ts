// Limits of one server as the sidecar uses them: milliseconds and bytes, all present.
// The relations between them are checked here, so that the operator, offline validation and the
// sidecar itself give one verdict.

import { z } from 'zod';

const timeoutMs = z.int().min(1).max(86_400_000);

export const limitsSchema = z
  .object({
    /** Calls on the wire at once, per partition. */
    maxConcurrency: z.int().min(1).max(1024),
    /** Calls that may wait for a permit, per partition. */
    queueSize: z.int().min(0).max(100_000),
    queueTimeoutMs: timeoutMs,
    /** DNS + TCP + TLS. */
    connectTimeoutMs: timeoutMs,
    /** The whole call's deadline when no stream is open: writing the request to the last byte of a JSON answer. */
    requestTimeoutMs: timeoutMs,
    /** Legal silence on an event stream. */
    streamReadTimeoutMs: timeoutMs,
    maxRequestBytes: z.int().min(1024).max(268_435_456),
    /** One JSON answer, or one event of a stream. */
    maxResponseBytes: z.int().min(1024).max(268_435_456),
    maxInputRounds: z.int().min(1).max(100),
    /** Repeats of a call that was provably not sent, or whose tool is ReadOnly. */
    maxRetries: z.int().min(0).max(10),
    terminateOnClose: z.boolean(),
  })
  .refine((limits) => limits.streamReadTimeoutMs >= limits.requestTimeoutMs, {
    path: ['streamReadTimeoutMs'],
    message: 'streamReadTimeout must not be shorter than requestTimeout',
  });

export type ServerLimits = z.infer<typeof limitsSchema>;
