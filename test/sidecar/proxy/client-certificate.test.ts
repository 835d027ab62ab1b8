import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { systemClock } from '#core/clock.ts';
import { createLogger } from '#core/telemetry/log.ts';
import { ClientCertificate } from '#sidecar/proxy/client-certificate.ts';
import { assertNoLeak, plantCanary } from '#test/support/canary.ts';
import { until } from '#test/support/sidecar-fixture.ts';
import { createTestAuthority } from '#test/support/test-certificates.ts';
import type { TestCertificate } from '#test/support/test-certificates.ts';

const authority = createTestAuthority();
const issue = (): TestCertificate => authority.issue({ names: ['binding'] });

async function openScene() {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-client-'));
  const lines: string[] = [];
  let changes = 0;
  const open = (): ClientCertificate =>
    new ClientCertificate({
      directory,
      clock: systemClock,
      log: createLogger({
        name: 'test',
        level: 'debug',
        destination: { write: (line) => void lines.push(line) },
      }),
      onChanged: () => (changes += 1),
    });
  return {
    directory,
    lines,
    open,
    get changes() {
      return changes;
    },
    write: async (files: Readonly<Record<string, string>>): Promise<void> => {
      for (const [name, text] of Object.entries(files))
        await writeFile(join(directory, name), text);
    },
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true }),
  };
}

const filesOf = ({ certPem, keyPem }: TestCertificate) => ({
  'tls.crt': certPem,
  'tls.key': keyPem,
  'ca.crt': authority.certPem,
});

suite('the client certificate for the proxy', () => {
  test('is pending until all of it is there, and then ready', async () => {
    await using scene = await openScene();
    const certificate = scene.open();
    await certificate.read();
    assert.deepEqual([certificate.identity, certificate.fault], ['pending', 'missing']);
    const pair = issue();
    await scene.write({ 'tls.crt': pair.certPem });
    await certificate.read();
    assert.deepEqual([certificate.identity, certificate.fault], ['pending', 'missing']);
    await scene.write(filesOf(pair));
    await certificate.read();
    assert.deepEqual(certificate.identity, { caPem: authority.certPem, client: pair });
    assert.deepEqual([certificate.fault, scene.changes], [undefined, 1]);
    certificate.close();
  });

  test('needs no authority for the proxy', async () => {
    await using scene = await openScene();
    const pair = issue();
    await scene.write({ 'tls.crt': pair.certPem, 'tls.key': pair.keyPem });
    const certificate = scene.open();
    await certificate.read();
    assert.deepEqual(certificate.identity, { caPem: undefined, client: pair });
    certificate.close();
  });

  test('a directory that is not there, or comes later, is no reason to end', async () => {
    await using scene = await openScene();
    await rm(scene.directory, { recursive: true });
    const certificate = scene.open();
    await certificate.read();
    assert.equal(certificate.state, 'pending');
    await mkdir(scene.directory);
    await scene.write(filesOf(issue()));
    await certificate.read();
    assert.equal(certificate.state, 'ready');
    certificate.close();
  });

  test('a new pair is seen without being asked for, and equal files are no change', async () => {
    await using scene = await openScene();
    const volume = async (name: string, pair: TestCertificate): Promise<void> => {
      await mkdir(join(scene.directory, name));
      for (const [file, text] of Object.entries(filesOf(pair)))
        await writeFile(join(scene.directory, name, file), text);
      await symlink(name, join(scene.directory, '..data_tmp'));
      await rename(join(scene.directory, '..data_tmp'), join(scene.directory, '..data'));
    };
    const [first, second] = [issue(), issue()];
    await volume('..1', first);
    const certificate = scene.open();
    await certificate.read();
    const before = certificate.identity;
    await volume('..2', first);
    await certificate.read();
    assert.equal(certificate.identity, before);
    await volume('..3', second);
    await until(() => scene.changes === 2);
    assert.ok(certificate.identity !== 'pending');
    assert.deepEqual(certificate.identity.client, second);
    certificate.close();
  });

  const halves: readonly [string, Readonly<Record<string, string>>, string][] = [
    ['the key of another pair', { 'tls.key': issue().keyPem }, 'not-a-pair'],
    ['a certificate cut off', { 'tls.crt': issue().certPem.slice(0, 200) }, 'not-a-certificate'],
    ['an empty key', { 'tls.key': '' }, 'not-a-certificate'],
    ['an authority that is none', { 'ca.crt': 'x' }, 'not-a-certificate'],
  ];
  for (const [title, change, fault] of halves)
    test(`${title} is half a change: the last good one stays`, async () => {
      await using scene = await openScene();
      const pair = issue();
      await scene.write(filesOf(pair));
      const certificate = scene.open();
      await certificate.read();
      await scene.write(change);
      await certificate.read();
      assert.ok(certificate.identity !== 'pending');
      assert.deepEqual([certificate.identity.client, certificate.fault], [pair, fault]);
      await scene.write(filesOf(pair));
      await certificate.read();
      assert.equal(certificate.fault, undefined);
      certificate.close();
    });

  test('nothing of the key reaches the log, good or bad', async () => {
    await using scene = await openScene();
    const pair = issue();
    const lines = pair.keyPem.split('\n').filter((line) => !line.startsWith('-'));
    const canary = plantCanary('a key that is none');
    await scene.write(filesOf(pair));
    const certificate = scene.open();
    await certificate.read();
    await scene.write({ 'tls.key': `-----BEGIN PRIVATE KEY-----\n${canary.value}\n` });
    await certificate.read();
    await scene.write({ 'tls.key': canary.value });
    await certificate.read();
    assert.ok(scene.lines.length >= 2);
    assertNoLeak(scene.lines.join(''), [
      canary,
      ...lines.slice(0, 2).map((value) => ({ name: 'the key', value })),
    ]);
    certificate.close();
  });
});
