// Secrets to plant in requests, credentials and errors, and the search for them in what a process
// put out. A canary is found in any of the spellings in which it could leak.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';

export interface Canary {
  /** What it stands for, e.g. `access token`; shown when it leaks. */
  readonly name: string;
  readonly value: string;
}

/** A new secret that no text contains by accident; `prefix` makes it look like the real thing. */
export function plantCanary(name: string, prefix = ''): Canary {
  return { name, value: `${prefix}canary${randomBytes(12).toString('hex')}` };
}

export interface PlantedSecrets {
  readonly accessToken: Canary;
  readonly refreshToken: Canary;
  readonly clientSecret: Canary;
  readonly authorizationCode: Canary;
  readonly sessionId: Canary;
  readonly argument: Canary;
  readonly result: Canary;
}

export function plantSecrets(): PlantedSecrets {
  return {
    accessToken: plantCanary('access token'),
    refreshToken: plantCanary('refresh token'),
    clientSecret: plantCanary('client secret'),
    authorizationCode: plantCanary('authorization code'),
    sessionId: plantCanary('session id'),
    argument: plantCanary('argument of a call'),
    result: plantCanary('result of a call'),
  };
}

/** Names of the canaries that `output` contains, with the spelling they were found in. */
export function findLeaks(output: string | Buffer, canaries: Iterable<Canary>): string[] {
  const text = typeof output === 'string' ? output : output.toString('latin1');
  return [...canaries].flatMap(({ name, value }) =>
    spellingsOf(value)
      .filter(([, spelling]) => text.includes(spelling))
      .map(([kind]) => `${name} (${kind})`),
  );
}

/** Fails when one of the secrets shows; never repeats the secret itself. */
export function assertNoLeak(
  output: string | Buffer,
  canaries: Iterable<Canary> | PlantedSecrets,
): void {
  const list = Symbol.iterator in canaries ? canaries : Object.values({ ...canaries });
  assert.deepEqual(findLeaks(output, list), [], 'secrets leaked');
}

function spellingsOf(value: string): readonly (readonly [string, string])[] {
  const bytes = Buffer.from(value, 'utf8');
  // Base64 of a text that holds the value somewhere: the three ways in which it can be aligned.
  const aligned = [0, 1, 2].map((shift) => {
    const start = shift === 0 ? 0 : 4;
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    return ['base64', encoded.slice(start, -2)] as const;
  });
  return [
    ['plain', value],
    ['upper case', value.toUpperCase()],
    ['first half', value.slice(0, Math.max(12, Math.floor(value.length / 2)))],
    ['second half', value.slice(-Math.max(12, Math.floor(value.length / 2)))],
    ['hex', bytes.toString('hex')],
    ['full SHA-256', createHash('sha256').update(bytes).digest('hex')],
    ...aligned,
  ];
}
