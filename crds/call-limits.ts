// Limits of the calls to one server. McpServer has all of them, with defaults; McpBinding has the
// narrowing ones, without defaults, and the lower value of the two counts.

import type { z } from 'zod';

import { TIMEOUT, duration, streamNotShorterThanRequest } from './durations.ts';
import { flag, int, object } from './field-schemas.ts';
import { withRules } from './rule.ts';

const MAX_BYTES = 268_435_456;

const narrowing = {
  maxConcurrency: int('Calls in flight at once, per tenant, user and server in one pod.', 1, 1024),
  queueSize: int('Calls that may wait for a free slot.', 0, 100_000),
  queueTimeout: duration(
    'How long a call waits for a free slot before it is answered as busy; nothing was sent then.',
    TIMEOUT,
  ),
  connectTimeout: duration('Limit for name resolution, TCP and TLS together.', TIMEOUT),
  requestTimeout: duration('Limit for a whole call that is answered without a stream.', TIMEOUT),
  streamReadTimeout: duration(
    'How long an event stream may be silent. Not shorter than requestTimeout.',
    TIMEOUT,
  ),
  maxRequestBytes: int('Largest request body, in bytes.', 1024, MAX_BYTES),
  maxResponseBytes: int(
    'Largest JSON answer, or largest event of a stream, in bytes.',
    1024,
    MAX_BYTES,
  ),
  maxInputRounds: int('How often one call may ask for further input.', 1, 100),
  maxRetries: int(
    'How often a call is repeated that was provably not sent, or whose tool only reads.',
    0,
    10,
  ),
} as const;

export const serverLimitsSchema = withRules(
  object('Limits of the calls to this server.', {
    maxConcurrency: narrowing.maxConcurrency.default(8),
    queueSize: narrowing.queueSize.default(128),
    queueTimeout: narrowing.queueTimeout.default('10s'),
    connectTimeout: narrowing.connectTimeout.default('5s'),
    requestTimeout: narrowing.requestTimeout.default('30s'),
    streamReadTimeout: narrowing.streamReadTimeout.default('300s'),
    maxRequestBytes: narrowing.maxRequestBytes.default(4_194_304),
    maxResponseBytes: narrowing.maxResponseBytes.default(16_777_216),
    maxInputRounds: narrowing.maxInputRounds.default(10),
    maxRetries: narrowing.maxRetries.default(2),
    terminateOnClose: flag('Ends the remote session (DELETE) when a connection closes.').default(
      true,
    ),
  }),
  [streamNotShorterThanRequest],
);

export const bindingLimitsSchema = withRules(
  object(
    "Lower limits for this binding. A value above the server's has no effect: the lower one counts.",
    {
      maxConcurrency: narrowing.maxConcurrency.optional(),
      queueSize: narrowing.queueSize.optional(),
      queueTimeout: narrowing.queueTimeout.optional(),
      connectTimeout: narrowing.connectTimeout.optional(),
      requestTimeout: narrowing.requestTimeout.optional(),
      streamReadTimeout: narrowing.streamReadTimeout.optional(),
      maxRequestBytes: narrowing.maxRequestBytes.optional(),
      maxResponseBytes: narrowing.maxResponseBytes.optional(),
      maxInputRounds: narrowing.maxInputRounds.optional(),
      maxRetries: narrowing.maxRetries.optional(),
    },
  ),
  [streamNotShorterThanRequest],
);

export type ServerLimitsSpec = z.output<typeof serverLimitsSchema>;
export type BindingLimitsSpec = z.output<typeof bindingLimitsSchema>;
