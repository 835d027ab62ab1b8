// Writes the canonical line of each request: one per call, so its members come as ready JSON text
// and not by way of pino, at a fifth of the cost. The same fields in front as in every other line.
// Its values become text here, and what is not known to be our own is scrubbed on the way.

import type { Clock } from '#core/clock.ts';
import { VERSION } from '#core/version.ts';

import type { LogDestination, LogLevel } from './log.ts';
import type { SecretRegistry } from './redact.ts';

/** Words that come again and again: methods, tools, servers, fingerprints. */
const MAX_REMEMBERED = 4_096;
const MAX_REMEMBERED_LENGTH = 256;

export interface CanonicalLog {
  /** `members`: JSON members that begin with a comma, or nothing. */
  write(level: LogLevel, members: string, message: string): void;
  /** JSON text of a value made by us or by the configuration: nothing to scrub. */
  own(value: string): string;
  /** JSON text of any other value that comes again, such as a tool's name; remembered. */
  foreign(value: string): string;
  /** JSON text of any other value, such as a trace id. */
  foreignOnce(value: string): string;
  /** Another number when what was made of foreign values before is to be made again. */
  readonly revision: number;
}

export interface CanonicalLogOptions {
  readonly name: string;
  readonly destination: LogDestination;
  readonly clock: Clock;
  readonly secrets: SecretRegistry;
}

export function createCanonicalLog(options: CanonicalLogOptions): CanonicalLog {
  return new JsonLineLog(options);
}

class JsonLineLog implements CanonicalLog {
  readonly #destination: LogDestination;
  readonly #clock: Clock;
  readonly #secrets: SecretRegistry;
  readonly #base: string;
  readonly #own = new Map<string, string>();
  readonly #foreign = new Map<string, string>();
  #secretsRevision = -1;
  #second = -1;
  #secondText = '';

  constructor({ name, destination, clock, secrets }: CanonicalLogOptions) {
    this.#destination = destination;
    this.#clock = clock;
    this.#secrets = secrets;
    this.#base = `","service":${JSON.stringify(name)},"version":${JSON.stringify(VERSION)}`;
  }

  get revision(): number {
    return this.#secrets.revision;
  }

  write(level: LogLevel, members: string, message: string): void {
    this.#destination.write(
      `{"level":"${level}","time":"${this.#timestamp()}${this.#base}${members},"msg":"${message}"}\n`,
    );
  }

  own(value: string): string {
    return this.#own.get(value) ?? remember(this.#own, value, JSON.stringify(value));
  }

  foreign(value: string): string {
    if (this.#secretsRevision !== this.#secrets.revision) {
      this.#secretsRevision = this.#secrets.revision;
      this.#foreign.clear();
    }
    return this.#foreign.get(value) ?? remember(this.#foreign, value, this.foreignOnce(value));
  }

  foreignOnce(value: string): string {
    return JSON.stringify(this.#secrets.scrub(value));
  }

  /** The seconds' part of the ISO form is made once a second. */
  #timestamp(): string {
    const nowMs = this.#clock.nowMs();
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#secondText = new Date(second * 1000).toISOString().slice(0, 20);
    }
    const ms = Math.floor(nowMs - second * 1000);
    return `${this.#secondText}${ms < 10 ? '00' : ms < 100 ? '0' : ''}${ms}Z`;
  }
}

function remember(known: Map<string, string>, value: string, text: string): string {
  if (value.length > MAX_REMEMBERED_LENGTH) return text;
  if (known.size >= MAX_REMEMBERED) known.clear();
  known.set(value, text);
  return text;
}
