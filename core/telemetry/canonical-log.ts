// Writes the canonical line of each request: one per call, so it is made by the engine's own JSON
// writer and not by pino, at a third of the cost. The same fields in front, the same scrubbing of
// everything that is not known to be our own.

import type { Clock } from '#core/clock.ts';
import { VERSION } from '#core/version.ts';

import type { LogDestination, LogLevel } from './log.ts';
import type { SecretRegistry } from './redact.ts';

/** A line by level, as pino's methods take it. */
export type CanonicalLog = Readonly<Record<LogLevel, (line: object, message: string) => void>>;

export interface CanonicalLogOptions {
  readonly name: string;
  readonly destination: LogDestination;
  readonly clock: Clock;
  readonly secrets: SecretRegistry;
}

/** Made by us from random or hashed values, or from the configuration: nothing to scrub. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  'event',
  'call_id',
  'server_id',
  'alias',
  'tenant_fingerprint',
  'user_fingerprint',
  'session_fingerprint',
  'agent',
  'catalog_snapshot_id',
  'config_revision',
  'result_class',
  'error_code',
]);

export function createCanonicalLog(options: CanonicalLogOptions): CanonicalLog {
  const { name, destination, clock, secrets } = options;
  const base = `"service":${JSON.stringify(name)},"version":${JSON.stringify(VERSION)}`;
  const timestamp = cachedTimestamp(clock);
  const writer = (level: LogLevel) => {
    const head = `{"level":"${level}","time":"`;
    return (line: object, message: string): void => {
      const body = JSON.stringify(scrubbed(line, secrets));
      const fields = body === '{}' ? '' : `,${body.slice(1, -1)}`;
      destination.write(
        `${head}${timestamp()}",${base}${fields},"msg":${JSON.stringify(message)}}\n`,
      );
    };
  };
  return {
    debug: writer('debug'),
    info: writer('info'),
    warn: writer('warn'),
    error: writer('error'),
  };
}

function scrubbed(line: object, secrets: SecretRegistry): object {
  let copy: Record<string, unknown> | undefined;
  for (const key in line) {
    const value: unknown = Reflect.get(line, key);
    if (typeof value !== 'string' || OWN_FIELDS.has(key)) continue;
    const clean = secrets.scrub(value);
    if (clean !== value) (copy ??= { ...line })[key] = clean;
  }
  return copy ?? line;
}

/** The seconds' part of the ISO form is made once a second. */
function cachedTimestamp(clock: Clock): () => string {
  let second = -1;
  let prefix = '';
  return () => {
    const nowMs = clock.nowMs();
    const nowSecond = Math.floor(nowMs / 1000);
    if (nowSecond !== second) {
      second = nowSecond;
      prefix = new Date(nowSecond * 1000).toISOString().slice(0, 20);
    }
    return `${prefix}${String(nowMs - nowSecond * 1000).padStart(3, '0')}Z`;
  };
}
