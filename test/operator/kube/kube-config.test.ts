// Where the operator looks for its cluster, as a program: what it says when there is none.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const PROGRAM = join(import.meta.dirname, '../../../bin/fairlead.ts');

test('an operator that finds no cluster says where it looked, and exits 1', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'fairlead-no-cluster-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const args = [PROGRAM, 'operator', '--health-port', '0', '--metrics-port', '0'];
  const { code, stderr } = await new Promise<{ code: number | null; stderr: string }>((resolve) => {
    const env = { PATH: process.env.PATH, HOME: home };
    const child = execFile(process.execPath, args, { env }, (_error, _stdout, text) =>
      resolve({ code: child.exitCode, stderr: text }),
    );
  });
  assert.equal(code, 1);
  assert.equal(
    stderr,
    'fairlead operator: no cluster is configured: there is no --kubeconfig, no KUBECONFIG, no ~/.kube/config and no service account of a pod\n',
  );
});
