import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { encodeTar } from './tar.ts';

const LONG = `${'folder/'.repeat(20)}file.txt`;

test('tar reads what was written, long names, modes and owners included', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'fairlead-tar-'));
  try {
    const path = join(directory, 'a.tar');
    const entries = [
      { name: 'bin/', mode: 0o755, content: Buffer.alloc(0) },
      { name: 'bin/run', mode: 0o755, content: Buffer.from('x'.repeat(1000)) },
      { name: LONG, mode: 0o644, content: Buffer.from('deep') },
    ];
    await writeFile(path, encodeTar(entries));
    const { stdout } = await promisify(execFile)('tar', ['--numeric-owner', '-tvf', path]);
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/));
    assert.deepEqual(
      lines.map(([mode, owner, size, , , name]) => [mode, owner, size, name]),
      [
        ['drwxr-xr-x', '0/0', '0', 'bin/'],
        ['-rwxr-xr-x', '0/0', '1000', 'bin/run'],
        ['-rw-r--r--', '0/0', '4', LONG],
      ],
    );
    const deep = await promisify(execFile)('tar', ['-xOf', path, LONG]);
    assert.equal(deep.stdout, 'deep');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('a name that does not fit is refused', () => {
  const content = Buffer.alloc(0);
  assert.throws(() => encodeTar([{ name: 'x'.repeat(101), mode: 0o644, content }]), RangeError);
});
