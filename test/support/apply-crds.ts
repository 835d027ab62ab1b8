// Applies both CRDs to a control plane and waits until the API server serves them.

import { readFile } from 'node:fs/promises';

import type { ControlPlane } from '#test/support/control-plane/start-control-plane.ts';

export const CRD_FILES = ['mcpservers.fairlead.dev.yaml', 'mcpbindings.fairlead.dev.yaml'] as const;

export async function applyCrds(plane: ControlPlane): Promise<void> {
  for (const file of CRD_FILES) {
    await plane.apply(await readFile(new URL(`../../crds/${file}`, import.meta.url), 'utf8'));
  }
  const names = CRD_FILES.map((file) => `crd/${file.replace('.yaml', '')}`);
  const { code, stderr } = await plane.kubectl([
    'wait',
    '--for=condition=Established',
    '--timeout=60s',
    ...names,
  ]);
  if (code !== 0) throw new Error(`the CRDs were not established: ${stderr}`);
}
