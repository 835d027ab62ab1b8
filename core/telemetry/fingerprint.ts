// Names for tenants, users and sessions that a log may carry. Tenants and users are keyed (HMAC
// under a key of the installation): a plain hash of an e-mail address can be guessed. Session ids
// are random, so 12 hex digits of SHA-256 are enough to correlate lines and too few to use.

import { createHash, createHmac, createSecretKey, randomBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { FairleadError } from '#core/errors.ts';
import type { TenantId, UserId } from '#core/identity/ids.ts';
import { makeDirectory } from '#core/make-directory.ts';

const KEY_BYTES = 32;
/** A pod knows few tenants and users; the bound only keeps hostile input from growing the cache. */
const MAX_CACHED = 4096;

export interface Fingerprinter {
  /** 16 hex digits. */
  tenant(id: TenantId): string;
  /** 16 hex digits; never equal to a tenant's of the same text. */
  user(id: UserId): string;
}

export function createFingerprinter(key: Buffer): Fingerprinter {
  if (key.length !== KEY_BYTES) throw new TypeError(`a fingerprint key has ${KEY_BYTES} bytes`);
  // A KeyObject is imported once; a raw key would be imported on every call, five times the cost.
  const imported = createSecretKey(key);
  return { tenant: cachedHmac(imported, 'tenant'), user: cachedHmac(imported, 'user') };
}

function cachedHmac(key: KeyObject, label: string): (id: string) => string {
  const cache = new Map<string, string>();
  return (id) => {
    const known = cache.get(id);
    if (known !== undefined) return known;
    const digits = createHmac('sha256', key).update(`${label}\0${id}`).digest('hex').slice(0, 16);
    if (cache.size >= MAX_CACHED) cache.clear();
    cache.set(id, digits);
    return digits;
  };
}

/** First 12 hex digits of SHA-256, only to correlate lines. */
export function sessionFingerprint(sessionId: string): string {
  return createHash('sha256').update(sessionId).digest('hex').slice(0, 12);
}

/**
 * The 32-byte key in a file of mode 0600, made when it is absent. The file is complete as soon as
 * it has its name, so two processes that start together end up with one key.
 */
export function loadFingerprintKey(path: string): Buffer {
  const existing = readKey(path);
  if (existing !== undefined) return existing;
  makeDirectory(dirname(path), 0o700);
  const draft = `${path}.${process.pid}.${randomBytes(6).toString('hex')}`;
  writeFileSync(draft, randomBytes(KEY_BYTES), { mode: 0o600, flag: 'wx' });
  try {
    linkSync(draft, path);
  } catch (error) {
    if (!isErrorCode(error, 'EEXIST')) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  const key = readKey(path);
  if (key === undefined) throw unreadable(path, 'it vanished');
  return key;
}

function readKey(path: string): Buffer | undefined {
  try {
    const key = readFileSync(path);
    if (key.length !== KEY_BYTES)
      throw unreadable(path, `it has ${key.length} bytes in place of ${KEY_BYTES}`);
    return key;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function unreadable(path: string, why: string): FairleadError {
  return new FairleadError('CONFIG_UNREADABLE', {
    logDetail: `fingerprint key ${JSON.stringify(path)}: ${why}`,
  });
}

function isErrorCode(error: unknown, code: string): boolean {
  return error instanceof Error && Reflect.get(error, 'code') === code;
}
