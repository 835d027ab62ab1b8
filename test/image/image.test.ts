// The image that the Dockerfile describes, put together from this machine's files and run: as its
// user, in a root that holds nothing else, with no network.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { buildBundle } from '#test/support/container-image/build-bundle.ts';
import { gatherImageContents, writeImageRoot } from '#test/support/container-image/image-files.ts';
import type { ImageContents } from '#test/support/container-image/image-files.ts';

const UID = 64731;

/** Undefined when the image can be run here. */
const skip =
  process.platform === 'linux' && process.getuid?.() === 0
    ? false
    : 'running the image needs root on Linux (chroot, unshare)';

let directory = '';
let image: ImageContents;

before(async () => {
  if (skip !== false) return;
  directory = await mkdtemp(join(tmpdir(), 'fairlead-image-'));
  await buildBundle(join(directory, 'dist'));
  image = await gatherImageContents(join(directory, 'dist'));
  await writeImageRoot(image.files, join(directory, 'root'));
});

after(async () => {
  if (directory !== '') await rm(directory, { recursive: true, force: true });
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The entrypoint, or another use of its Node, in namespaces of its own. */
function runInImage(command: readonly string[]): Promise<Ended> {
  const root = join(directory, 'root');
  const isolated = ['--mount', '--net', '--ipc', '--uts', '/usr/sbin/chroot'];
  const args = [...isolated, `--userspec=${image.stage.user}`, '--groups=', root, ...command];
  return new Promise((resolve) => {
    const child = execFile('unshare', args, { env: {} }, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

test('the image starts from nothing and runs as its own user', { skip }, () => {
  assert.equal(image.stage.base, 'scratch');
  assert.equal(image.stage.user, `${UID}:${UID}`);
});

test('the image prints its version', { skip }, async () => {
  const { code, stdout, stderr } = await runInImage([...image.stage.entrypoint, 'version']);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^fairlead \d/);
});

for (const program of ['sidecar', 'operator', 'dev', 'validate', 'render']) {
  test(`the image loads ${program}`, { skip }, async () => {
    const { code, stdout, stderr } = await runInImage([
      ...image.stage.entrypoint,
      program,
      '--help',
    ]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /Usage/);
  });
}

test('the image holds no shell and nothing beyond what the Dockerfile lists', {
  skip,
}, async () => {
  const { code } = await runInImage(['/bin/sh', '-c', 'true']);
  assert.notEqual(code, 0);
  const { stdout } = await runInImage(['/usr/bin/node', '-e', LIST_FILES]);
  const found = JSON.parse(stdout) as { path: string }[];
  const listed = image.files.map(({ target }) => target).toSorted();
  assert.deepEqual(found.map(({ path }) => path).toSorted(), listed);
});

test('its user can change no file and no folder of the image', { skip }, async () => {
  const { code, stdout, stderr } = await runInImage(['/usr/bin/node', '-e', LIST_WRITABLE]);
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { uid: UID, gid: UID, groups: [UID], writable: [] });
});

test('the trusted roots of the system can be used', { skip }, async () => {
  const count = `process.stdout.write(String(tls.getCACertificates('system').length))`;
  const { stdout, stderr } = await runInImage(['/usr/bin/node', '--use-system-ca', '-e', count]);
  assert.ok(Number(stdout) > 50, stderr);
});

const LIST_FILES = `
  const entries = fs.readdirSync('/', { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory());
  console.log(JSON.stringify(files.map((entry) => ({ path: path.join(entry.parentPath, entry.name) }))));
`;

const LIST_WRITABLE = `
  const paths = ['/', ...fs.readdirSync('/', { recursive: true }).map((name) => '/' + name)];
  const writable = paths.filter((name) => {
    try { fs.accessSync(name, fs.constants.W_OK); return true; } catch { return false; }
  });
  const ids = { uid: process.getuid(), gid: process.getgid(), groups: process.getgroups() };
  console.log(JSON.stringify({ ...ids, writable }));
`;
