// `fairlead version`: the version, and the Node that runs it.

import { VERSION } from '#core/version.ts';

export function versionCommand(): number {
  process.stdout.write(`fairlead ${VERSION} (node ${process.version})\n`);
  return 0;
}
