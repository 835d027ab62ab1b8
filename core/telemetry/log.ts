// JSON lines on stdout by pino, without transports (they break in a bundle). Lines are written
// asynchronously and flushed when the process ends. Errors go through an allowlist serializer and
// every line through the scrubber; nothing else may write a log line.

import { destination as pinoDestination, pino, stdTimeFunctions } from 'pino';
import type { LogFn, Logger as PinoLogger } from 'pino';

import { systemClock } from '#core/clock.ts';
import type { Clock } from '#core/clock.ts';
import { VERSION } from '#core/version.ts';
import { LineBatch } from './line-batch.ts';
import { createSecretRegistry } from './redact.ts';
import type { SecretRegistry } from './redact.ts';
import { serializeError } from './serialize-error.ts';

export type Logger = PinoLogger;
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogDestination {
  /** One whole line, with its line feed. */
  write(line: string): void;
}

export interface LoggerOptions {
  /** Program name, e.g. `fairlead-sidecar`; the field `service` of every line. */
  readonly name: string;
  readonly level: LogLevel;
  /** In place of stdout. */
  readonly destination?: LogDestination | undefined;
  /** Live secrets to scrub; one registry per process, shared with the credential code. */
  readonly secrets?: SecretRegistry | undefined;
}

/** Standard output, in large pieces; one per process. */
export function openLogOutput(clock: Clock = systemClock): LogDestination {
  return new LineBatch(pinoDestination({ dest: 1, sync: false }), clock);
}

export function createLogger(options: LoggerOptions): Logger {
  const secrets = options.secrets ?? createSecretRegistry();
  const output = options.destination ?? openLogOutput();
  const asFields = (error: unknown) =>
    serializeError(error, { withStack: logger.isLevelEnabled('debug') });
  const logger: Logger = pino(
    {
      level: options.level,
      base: { service: options.name, version: VERSION },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: asFields, error: asFields, cause: asFields },
      hooks: { logMethod: logWithoutForeignMessage },
    },
    { write: (line: string) => output.write(secrets.scrub(line)) },
  );
  return logger;
}

/** pino would take the message of a logged error as the line's own; foreign messages hold secrets. */
function logWithoutForeignMessage(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
  const [first, message] = args;
  if (first instanceof Error) {
    method.call(
      this,
      { err: first },
      typeof message === 'string' ? message : `error: ${first.name}`,
    );
  } else if (
    message === undefined &&
    typeof first === 'object' &&
    first !== null &&
    Reflect.get(first, 'err') instanceof Error
  ) {
    method.call(this, first, 'error');
  } else {
    method.apply(this, args);
  }
}
