// The part of a pino logger that this folder uses.

import type { Logger } from '#core/telemetry/log.ts';

export type WatchLog = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;
