import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { Worker } from 'node:worker_threads';

import { FairleadError } from '#core/errors.ts';
import { tenantId, userId } from '#core/identity/ids.ts';
import {
  createFingerprinter,
  loadFingerprintKey,
  sessionFingerprint,
} from '#core/telemetry/fingerprint.ts';

const key = Buffer.alloc(32, 7);

suite('fingerprints of tenants and users', () => {
  test('are 16 hex digits, equal for equal ids under one key', () => {
    const first = createFingerprinter(key);
    const second = createFingerprinter(key);
    const ada = userId('ada@example.com');
    assert.match(first.user(ada), /^[0-9a-f]{16}$/);
    assert.equal(first.user(ada), first.user(ada));
    assert.equal(first.user(ada), second.user(ada));
  });

  test('cannot be guessed without the key: another key, another fingerprint, and never a plain hash', () => {
    const ada = userId('ada@example.com');
    const mine = createFingerprinter(key).user(ada);
    assert.notEqual(mine, createFingerprinter(Buffer.alloc(32, 8)).user(ada));
    assert.ok(!createHash('sha256').update(ada).digest('hex').startsWith(mine));
  });

  test('a tenant and a user of the same text differ', () => {
    const fingerprinter = createFingerprinter(key);
    assert.notEqual(fingerprinter.tenant(tenantId('same')), fingerprinter.user(userId('same')));
  });

  test('stay right when more ids come by than are remembered', () => {
    const fingerprinter = createFingerprinter(key);
    const expected = createFingerprinter(key).user(userId('u1'));
    for (let index = 0; index < 10_000; index += 1) fingerprinter.user(userId(`u${index}`));
    assert.equal(fingerprinter.user(userId('u1')), expected);
  });

  test('a key of another length is refused', () => {
    assert.throws(() => createFingerprinter(Buffer.alloc(16)), TypeError);
  });
});

test('a session fingerprint is the first 12 hex digits of SHA-256 (R103)', () => {
  const expected = createHash('sha256').update('session-1').digest('hex').slice(0, 12);
  assert.equal(sessionFingerprint('session-1'), expected);
});

suite('the key file', () => {
  async function withDirectory(run: (directory: string) => Promise<void>): Promise<void> {
    const directory = await mkdtemp(join(tmpdir(), 'fairlead-key-'));
    try {
      await run(directory);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }

  test('is made once with mode 0600, in a directory that may be missing, and read afterwards', () =>
    withDirectory(async (directory) => {
      const path = join(directory, 'state', 'fingerprint.key');
      const made = loadFingerprintKey(path);
      assert.equal(made.length, 32);
      assert.equal((await stat(path)).mode & 0o777, 0o600);
      assert.deepEqual(loadFingerprintKey(path), made);
      assert.deepEqual(await readFile(path), made);
      assert.deepEqual(await readdir(join(directory, 'state')), ['fingerprint.key']);
    }));

  test('two processes that start together end up with one key', () =>
    withDirectory(async (directory) => {
      const path = join(directory, 'fingerprint.key');
      const source = `
        const { parentPort, workerData } = require('node:worker_threads');
        import(workerData.module).then(({ loadFingerprintKey }) =>
          parentPort.postMessage(loadFingerprintKey(workerData.path).toString('hex')));`;
      const module = new URL('../../../core/telemetry/fingerprint.ts', import.meta.url).href;
      const keys = await Promise.all(
        Array.from(
          { length: 4 },
          () =>
            new Promise<unknown>((resolve, reject) => {
              const worker = new Worker(source, { eval: true, workerData: { module, path } });
              worker.once('message', resolve);
              worker.once('error', reject);
            }),
        ),
      );
      assert.equal(new Set(keys).size, 1);
      assert.equal(keys[0], (await readFile(path)).toString('hex'));
    }));

  test('of a wrong length is an error that names the file and does not show or replace it', () =>
    withDirectory(async (directory) => {
      const path = join(directory, 'fingerprint.key');
      await writeFile(path, 'half a key');
      assert.throws(
        () => loadFingerprintKey(path),
        (error) => {
          assert.ok(error instanceof FairleadError);
          assert.equal(error.code, 'CONFIG_UNREADABLE');
          assert.doesNotMatch(String(error.logDetail), /half a key/);
          return true;
        },
      );
      assert.equal(await readFile(path, 'utf8'), 'half a key');
    }));

  test('that cannot be made is an error, not a silent key in memory', () =>
    withDirectory(async (directory) => {
      const file = join(directory, 'file');
      await writeFile(file, '');
      await chmod(file, 0o600);
      assert.throws(() => loadFingerprintKey(join(file, 'fingerprint.key')));
    }));
});
