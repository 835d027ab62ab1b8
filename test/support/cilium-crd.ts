// The CustomResourceDefinition of CiliumNetworkPolicy, from Cilium's own Go module, in the user's
// cache: what a real API server needs to judge the policies that are rendered for Cilium.

import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { readModuleFile } from './go-module.ts';
import { buildInto, cacheRoot } from './program-cache.ts';
import type { BuildOptions } from './program-cache.ts';

const MODULE = 'github.com/cilium/cilium@v1.20.2';
const PATH = 'pkg/k8s/apis/cilium.io/client/crds/v2/ciliumnetworkpolicies.yaml';

/** Path of the YAML file. Needs `go` on PATH the first time. */
export async function bringCiliumCrd(options: BuildOptions = {}): Promise<string> {
  const directory = join(
    cacheRoot(process.env),
    'cilium-crd',
    MODULE.slice(MODULE.indexOf('@') + 1),
  );
  const file = join(directory, 'ciliumnetworkpolicies.yaml');
  if (existsSync(file)) return file;
  await buildInto(directory, options, async (out, progress) => {
    progress(`downloading ${MODULE}`);
    await writeFile(join(out, 'ciliumnetworkpolicies.yaml'), await readModuleFile(MODULE, PATH));
  });
  return file;
}
